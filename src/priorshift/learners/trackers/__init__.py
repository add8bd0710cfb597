"""Learners that follow the class prior and reweight f0."""
