"""Results that outlive the process that measured them."""

from priorshift.experiments.store.file import Store
from priorshift.experiments.store.identity import code_digest, describe, digest, package_versions

__all__ = ["Store", "code_digest", "describe", "digest", "package_versions"]
