"""Many streams of one model on one machine: a fleet of records with one compiled step."""

from priorshift.fleet.fleet import Fleet, Moved, Summary, load

__all__ = ["Fleet", "Moved", "Summary", "load"]
