"""A plugin of pytest: a test-suite in which ``import jax`` means minijax."""

# Made from chapters/42_as_jax_rest.md by `make chapter`;
# edit the chapter, not this file.

import os
import shlex
import sys

from minijax.as_jax.aliases import install
from minijax.as_jax.report import outcomes

_SWITCH = "MINIJAX_AS_JAX"


def _is_wanted(config):
    words = [*config.invocation_params.args]
    words += shlex.split(os.environ.get("PYTEST_ADDOPTS", ""))
    named = any(f"{word}".endswith("minijax.as_jax") for word in words)
    return named or "--as-jax" in words or os.environ.get(_SWITCH, "0") not in ("", "0")


def pytest_addoption(parser: object) -> None:
    """Let pytest know the option ``--as-jax``."""
    text = "let `import jax` mean minijax"
    parser.getgroup("minijax").addoption("--as-jax", action="store_true", help=text)


def pytest_plugin_registered(plugin: object, manager: object) -> None:
    """Put minijax under the name jax as soon as pytest knows of this plugin."""
    ours = plugin is sys.modules["minijax.as_jax"]
    if not ours or not _is_wanted(manager.get_plugin("pytestconfig")):
        return
    try:
        install()
    except RuntimeError as error:
        import pytest

        raise pytest.UsageError(str(error)) from None


def pytest_runtest_logreport(report: object) -> None:
    """Count the outcomes of tests, for the report."""
    if report.when == "call" or report.outcome == "skipped":
        outcomes[report.outcome] += 1
    elif report.outcome == "failed":
        outcomes["error"] += 1
