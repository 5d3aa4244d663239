"""Random programs with own rules, forgetting and keys agree however they run."""

import re
from collections import Counter

import numpy as np
import pytest

from tests.commands import blocks
from tests.program_writer import DTYPES, Types
from tests.random_calls import AROUND, RulesComparison, report
from tests.rules_writer import (
    HALVES,
    JVP_RULES,
    KEYS,
    OUTER,
    OWN,
    PAIRS,
    SIZES,
    VJP_RULES,
    RulesProgram,
)


@pytest.mark.parametrize("block", blocks(1, 8))
def test_block_of_six(block):
    checked = 0
    for seed in range(6 * block, 6 * block + 6):
        comparison = RulesComparison(seed, alone=True, length=3)
        assert not comparison.found, report(seed, comparison)
        checked += comparison.checked
    assert checked >= 60


@pytest.fixture(scope="module")
def written():
    """Three hundred programs, which are written and not run."""
    judges = [Types("minijax")]
    return [RulesProgram(2 * seed, judges, length=3) for seed in range(300)]


def test_every_kind_of_rule_is_drawn(written):
    met = Counter(word for p in written for word in {*p.rules, *p.kinds})
    wanted = {*JVP_RULES, *VJP_RULES, "integers", *OWN}
    assert min(met[word] for word in wanted) >= 5, met


def test_every_kind_of_input_is_drawn(written):
    inputs = [x for p in written for x in p.inputs.values()]
    sizes = Counter(size for x in inputs for size in {*np.shape(x)})
    assert min(sizes[size] for size in SIZES) >= 3, sizes
    dtypes = Counter(x.dtype.name for x in inputs if hasattr(x, "dtype"))
    assert min(dtypes[name] for name in [*DTYPES, *HALVES]) >= 10, dtypes
    numbers = Counter(type(x) for x in inputs)
    assert min(numbers[kind] for kind in (bool, int, float)) >= 5, numbers


def test_keys_are_given_and_used_in_every_way(written):
    used = [
        p for p in written if re.search(r"[( ]key[),]", p.source[p.source.index(":") :])
    ]
    given = Counter(p.given for p in used)
    assert min(given[how] for how in KEYS if how != "none") >= 10, given


def test_every_pair_of_transformations_is_drawn(written):
    assert {*AROUND} == {*OUTER}
    pairs = Counter(p.pair for p in written)
    assert len(PAIRS) == 36 and min(pairs[pair] for pair in PAIRS) >= 5, pairs
