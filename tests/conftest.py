"""Shared settings: what needs real JAX runs in `make oracle` only."""

import os
from pathlib import Path

import pytest

ORACLE = Path(__file__).parent / "oracle"
WITH_JAX = bool(os.environ.get("MINIJAX_ORACLE"))


def pytest_ignore_collect(collection_path):
    """Leave `tests/oracle` alone where there is no JAX to import."""
    return True if collection_path == ORACLE and not WITH_JAX else None


def pytest_collection_modifyitems(items):
    """Mark what lies in `tests/oracle`; skip what is marked where JAX is missing."""
    for item in items:
        if ORACLE in item.path.parents:
            item.add_marker(pytest.mark.oracle)
        if item.get_closest_marker("oracle") and not WITH_JAX:
            item.add_marker(pytest.mark.skip(reason="needs JAX: make oracle"))
