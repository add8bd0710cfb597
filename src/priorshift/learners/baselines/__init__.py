"""Learners that reweight f0 by means of estimates: FIX, FTH, FTFWH, ROGD."""
