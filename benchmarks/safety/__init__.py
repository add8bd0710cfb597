"""Whether adapting ever does harm, measured: ``python -m benchmarks.safety``."""
