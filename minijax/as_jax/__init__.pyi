# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.as_jax.aliases import install as install
from minijax.as_jax.aliases import uninstall as uninstall
from minijax.as_jax.plugin import pytest_addoption as pytest_addoption
from minijax.as_jax.plugin import pytest_plugin_registered as pytest_plugin_registered
from minijax.as_jax.plugin import pytest_runtest_logreport as pytest_runtest_logreport
