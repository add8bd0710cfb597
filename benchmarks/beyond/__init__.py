"""What is claimed beyond the paper, measured: ``python -m benchmarks.beyond``."""
