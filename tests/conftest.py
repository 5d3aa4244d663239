"""Shared settings: what needs real JAX runs in `make oracle` only; tables stay clean.

Some tests make primitives of their own. Their rules are in the tables while the tests
of that file run, and not when others look at every primitive there is.

Hypothesis draws the same examples in each run, and nobody looks at a clock: a test
that fails today fails tomorrow. `--hypothesis-profile default` looks for new ones.
"""

import gc
import importlib
import os
import pkgutil
import re
import tracemalloc
from contextlib import suppress
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings
from llvmlite import binding

import minijax
from minijax.core import rule_tables
from minijax.jitting.compilation import backends
from minijax.llvm import compiler
from tests.shares_of_cases import by_turns

minijax.config.update("jax_num_cpu_devices", 2)  # a second place for arrays
# "1": all arrays are on cpu:1; "card": on a GPU that is emulated; "gpu": on a real one;
# another name: on the last device of that platform.
ELSEWHERE = os.environ.get("MINIJAX_TEST_DEVICE")
ON_A_CARD = ELSEWHERE in ("card", "gpu")

ORACLE = Path(__file__).parent / "oracle"

os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "0")  # all code is made here

settings.register_profile(
    "steady",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")

for module in pkgutil.walk_packages(minijax.__path__, "minijax."):
    importlib.import_module(module.name)

HOUSE = {primitive for table in rule_tables for primitive in [*table, *table.reasons]}
put_away = {}  # from test files to the rules of their primitives


# Stand-ins for packages, for the suites of `make conformance`; no tests.
collect_ignore_glob = ["conformance/*"]


def pytest_ignore_collect(collection_path):
    """Leave `tests/oracle` alone without JAX, and tests of places if they are fixed."""
    if collection_path == ORACLE and not os.environ.get("MINIJAX_ORACLE"):
        return True
    return True if COMMITTED and collection_path.name in ABOUT_PLACES else None


def tidy(path):
    """Take the rules of a file's own primitives out of the tables."""
    mine = put_away.setdefault(path, [])
    for table in rule_tables:
        for rules in (table, table.reasons):
            for primitive in [p for p in rules if p not in HOUSE]:
                mine.append((rules, primitive, rules.pop(primitive)))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Collect a file, and take away what it has registered."""
    report = yield
    tidy(collector.path)
    return report


if ELSEWHERE:
    from minijax.arrays.array import ArrayImpl
    from minijax.dispatch.fastpath_functions import enable_fastpath
    from minijax.dispatch.word_language import UnknownLayout
    from minijax.jitting import api

    if ELSEWHERE == "card":
        from minijax.cuda.driver import cupy_stand_in
        from tests.late_card import LateCuPy

        cupy_stand_in.value = LateCuPy()
    with suppress(UnknownLayout):
        enable_fastpath()  # which tries itself out with an array on the host
    FIRST = minijax.devices()[0]
    if ELSEWHERE == "1":
        CHOSEN = minijax.devices("cpu")[1]
    else:  # the last device of a platform: the card, or one of your own
        CHOSEN = minijax.devices("gpu" if ON_A_CARD else ELSEWHERE)[-1]
    minijax.config.update("jax_default_device", CHOSEN)
    if not ON_A_CARD:
        # `jit(backend="cpu")` asks for machine code in most tests, and not for cpu:0.
        api.devices = lambda platform: [CHOSEN] if platform == "cpu" else []
COMMITTED = ELSEWHERE and os.environ.get("MINIJAX_TEST_COMMITTED")
if COMMITTED:
    CHOSEN.uncommitted = CHOSEN.committed  # whatever is made has to stay where it is
ABOUT_PLACES = "test_arrays_devices_placement.py", "test_jitting_arguments_placing.py"


made = {}


def made_once(library, make=compiler.object_code):
    """Have LLVM make each text's code once in a process; a third of them come again.

    Where a test counts what is left behind, nothing is kept.
    """
    if tracemalloc.is_tracing():
        return make(library)
    key = library.text, library.recipe(binding)
    if key not in made:
        made[key] = make(library)
    return made[key]


kept = os.environ["JAX_ENABLE_COMPILATION_CACHE"]
minijax.config.update("jax_enable_compilation_cache", kept)  # defined before that line
for module in compiler, minijax.dispatch.compilation_cache:
    module.object_code = made_once

EVERY = int(os.environ.get("MINIJAX_TEST_EVERY", "1"))  # one test of so many


def pytest_collection_modifyitems(items):
    """Take a share of the tests; skip on a card what asks for another platform."""
    items[:] = [x for x in items if crc32(x.nodeid.encode()) % EVERY == 0]
    items[:] = by_turns(items)
    for item in items if ON_A_CARD else []:
        if mark := item.get_closest_marker("of_the_cpu"):
            item.add_marker(pytest.mark.skip(reason=f"of the CPU: {mark.args[0]}"))
        named = getattr(item, "callspec", None) and item.callspec.params.get("backend")
        serves = getattr(backends.get(named), "platforms", ("gpu",))
        function = item.name.partition("[")[0]
        reason = OF_THE_CPU.get(item.name) or OF_THE_CPU.get(function)
        if "gpu" not in serves or reason:
            reason = reason or f"asks for the backend {named!r}"
            item.add_marker(pytest.mark.skip(reason=f"of the CPU: {reason}"))


def pytest_collection_finish():
    """Keep the tests themselves out of what each search for garbage looks through."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def what_others_have_left_is_at_rest(request):
    """Let a file's searches for garbage look through what that file makes, and no more.

    All that earlier files keep would be looked through again by each search, half a
    second long; and some tests search in each of a hundred turns. Beside JAX, whose
    programs are let go of in cycles, nothing is set aside.
    """
    if ORACLE not in request.path.parents:
        gc.collect()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip on a card, too, a test that asks for such a backend within."""
    try:
        return (yield)
    except RuntimeError as error:
        if ON_A_CARD and OTHER_BACKEND.match(str(error)):
            pytest.skip(str(error))
        raise


OTHER_BACKEND = re.compile(r"The backend '\w+' makes programs for cpu; this one is to")
# What makes no sense on a card, and why; marks `of_the_cpu` say it of single tests.
OF_THE_CPU = {
    "test_emitted_lines": "asks for the backend of Python",
    "test_backends[python]": "asks for the backend of Python",
    "test_many_eager_loops_leave_nothing_behind": "waits for none of them",
    "test_agrees_with_numpy": "wants NumPy's bits of functions; a card has CUDA's",
}


@pytest.fixture(autouse=bool(ELSEWHERE))
def nothing_is_left_on_the_first_device(request):
    """Let a test make no array on another device than the one that was chosen."""
    if request.path.name in ABOUT_PLACES:
        yield
        return
    astray, make = [], ArrayImpl.__init__

    def watched(self, buffer, aval, placement=None):
        make(self, buffer, aval, placement)
        chosen = minijax.config.jax_default_device is CHOSEN  # and not by a test
        if chosen and self.placement is FIRST.uncommitted:
            astray.append(aval)

    ArrayImpl.__init__ = watched
    yield
    ArrayImpl.__init__ = make
    assert not astray, f"arrays were made on another device: {astray[:5]}"


@pytest.fixture(scope="module")
def machine():
    """A GPU that is emulated, and what stands in for CuPy; gone after the module."""
    from tests.emulated_card import emulated_gpu

    with emulated_gpu() as pair:
        yield pair


@pytest.fixture
def gpu(machine):
    """That GPU, a device."""
    return machine[0]


@pytest.fixture(autouse=True)
def own_primitives(request):
    """Let a test find the rules of the primitives that its file has made."""
    for rules, primitive, rule in put_away.pop(request.path, []):
        rules[primitive] = rule
    yield
    tidy(request.path)
