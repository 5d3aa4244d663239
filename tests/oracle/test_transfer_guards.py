"""Which calls move numbers, as guards of transfers tell of them: as in JAX."""

import jax
import pytest

import minijax
from tests.transfer_cases import BETWEEN_DEVICES, CASES, moving

LEVELS = "allow", "log", "disallow", "log_explicit", "disallow_explicit"
WAYS = "host_to_device", "device_to_device", "device_to_host"


@pytest.mark.parametrize("level", LEVELS[2::2])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("cases", [CASES, BETWEEN_DEVICES])
def test_the_same_calls_are_refused(cases, way, level):
    ours, theirs = cases(minijax), cases(jax)
    for name in ours:
        ours[name](), theirs[name]()
        found = moving(minijax, way, level, ours[name])
        assert found == moving(jax, way, level, theirs[name]), name
