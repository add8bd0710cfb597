"""What ``make bench`` runs: every figure a ratio of two things timed in the same process."""
