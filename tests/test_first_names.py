"""What works does not depend on the name that a process asks for first: a share."""

import os

import pytest

from tests import first_names
from tests.commands import LONG, blocks
from tests.mutants_package import switched_on

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="nothing is forked here"
)
SHARES = 8 if LONG else 2  # processes side by side


@pytest.mark.parametrize("share", range(SHARES))
def test_a_name_of_each_folder_first(share):
    """A name of one module of each folder, drawn at random; with `LONG=1` all names.

    Imports alone are met in `test_any_module_may_be_the_first`.
    """
    if LONG:
        cases = [[name] for name, _ in first_names.all_names()]
    else:
        cases = first_names.one_of_each_folder()
    assert first_names.compare(cases[share::SHARES]) == []


@pytest.mark.parametrize("seed", blocks(1, 20))
def test_two_names_first(seed):
    assert first_names.compare(first_names.pairs(seed, 20 if LONG else 6)) == []


def test_names_of_strangers():
    """The first functions of programs that broke `x.at` once."""
    names = "nn.softmax scipy.special.logsumexp scipy.stats.gaussian_kde".split()
    assert first_names.compare([[f"minijax.{name}"] for name in names]) == []


def test_an_order_that_matters_is_found():
    refused = pytest.raises(AssertionError, match="chapter on gather and scatter")
    with switched_on("the last one wins"), refused:
        first_names.compare([["minijax.numpy.ones"]])


def test_hooks_are_found():
    """The tables that floors fill, found in the text of the package."""
    names = {name for _, name in first_names.hooks()}
    assert {
        "tracer_methods",
        "jvp_rules",
        "step_kinds",
        "decorators",
        "backends",
    } <= names
