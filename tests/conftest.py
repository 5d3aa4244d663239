"""Shared settings: what needs real JAX runs in `make oracle` only."""

import os
from pathlib import Path

ORACLE = Path(__file__).parent / "oracle"


def pytest_ignore_collect(collection_path):
    """Leave `tests/oracle` alone where there is no JAX to import."""
    if collection_path == ORACLE and not os.environ.get("MINIJAX_ORACLE"):
        return True
    return None
