"""Trackers' steps, compiled where numba is installed: one function for one stream or for many.

A stream is a row of numbers, laid out as ``trackers/records.py`` says. All functions are compiled
``strict``: a stream gets the same bits alone or among others. Their NumPy twins, which give the
same numbers up to rounding, are the learners' own methods.
"""
