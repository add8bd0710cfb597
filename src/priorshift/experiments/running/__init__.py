"""Runs of learners over streams, in worker processes."""
