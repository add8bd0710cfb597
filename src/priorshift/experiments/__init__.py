"""Running experiments: the paper's tables and figures, reports, and their commands."""
