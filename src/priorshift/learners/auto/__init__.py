"""Auto: trackers at the core, and a linear model where the held-out set shows that it pays."""
