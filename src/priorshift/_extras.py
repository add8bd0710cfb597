"""Packages that are extras: who needs one that is missing says how to get it."""

from __future__ import annotations

import importlib.util

from priorshift.errors import PriorshiftError

# What is made with each package, and the extra that has it.
_EXTRAS = {
    "matplotlib": ("pictures", "plot"),
    "jinja2": ("reports", "experiments"),
    "pandas": ("frames and CSV files", "frames"),
    "polars": ("Parquet files and tables of Arrow", "frames"),
    "skops": ("skops files", "skops"),
    "mlflow": ("models of MLflow", "mlflow"),
    "httpx": ("clients of the service", "client"),
    "psycopg": ("PostgreSQL databases", "postgres"),
    **{
        name: ("services", "serve")
        for name in ("starlette", "uvicorn", "msgspec", "orjson", "prometheus_client")
    },
}


def need(*packages: str) -> None:
    """Refuse, with the way out, when one of the packages that are needed is not installed.

    Examples
    --------
    >>> need("matplotlib")
    """
    for package in packages:
        if importlib.util.find_spec(package) is None:
            what, extra = _EXTRAS[package]
            raise PriorshiftError(f"{what} need {package}, which is not installed: {way(extra)}")


def way(extra: str) -> str:
    """How to get an extra: priorshift is installed from its repository.

    Examples
    --------
    >>> way("plot")
    "pip install '.[plot]' in the folder of the priorshift repository"
    """
    return f"pip install '.[{extra}]' in the folder of the priorshift repository"
