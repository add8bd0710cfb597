"""Where ``per_source`` was; import it from ``priorshift.source.derived``."""

from priorshift.source.derived import per_source

__all__ = ["per_source"]
