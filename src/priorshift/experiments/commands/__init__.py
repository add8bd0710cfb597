"""The commands of experiments: run, reproduce, data."""
