"""Learners with a linear model of their own: UOGD, ATLAS, ATLAS-ADA and its hints."""
