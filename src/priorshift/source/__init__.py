"""The offline stage: everything that is known before the stream begins, and never changes after."""

from priorshift.source.source import Batch, Source, build_source

__all__ = ["Batch", "Source", "build_source"]
