"""Which test-suites are run, where their tests are, and what is skipped."""

from typing import NamedTuple


class Suite(NamedTuple):
    """A source archive with tests.

    Attributes:
      version: that of the archive.
      tests: patterns of the files with tests.
      needs: packages that the tests import, apart from NumPy, SciPy and pytest.
      beside: packages that the tests import and that would install JAX themselves.
      front: folders of this one that come before the archive on the path.
      setting: variables of the environment.
      one_of: only one test of this many is run, chosen by a sum of its name, where
        all of them take real JAX more than some eight minutes.
      left_out: reasons, and patterns of the files that are not run for that reason.
      skips: reasons, and patterns of the tests that cannot pass for that reason.
    """

    version: str
    tests: str
    needs: str = ""
    beside: str = ""
    front: tuple = ()
    setting: dict = {}
    one_of: int = 1
    left_out: dict = {}
    skips: dict = {}


SUITES = {
    "gymnax": Suite(
        "1.0.1",
        "tests/test_*.py",
        "absl-py gymnasium<1.4 matplotlib seaborn msgpack pyyaml rich six toolz",
        beside="chex flax optax treescope",
        one_of=4,
    ),
    "mujoco_mjx": Suite(
        "3.17.0",
        "mujoco/mjx/_src/*_test.py mujoco/mjx/integration_test/*_test.py",
        "absl-py etils[epath] mujoco trimesh",
        one_of=128,
    ),
    "numpyro": Suite(
        "0.22.0",
        "test/test_*.py",
        "absl-py tqdm multipledispatch",
        one_of=16,
        left_out={
            "Its 16,000 tests take JAX longer to collect than a share of them.": [
                "test_distributions.py"
            ],
            "A part of the suite: these compile whole models, or build on those.": [
                "test_compile.py",
                "test_examples.py",
                "test_flows.py",
                "test_gof.py",
                "test_handlers.py",
                "test_model_rendering.py",
                "test_nn.py",
            ],
            "It asks for funsor, which is not installed.": ["test_pickle.py"],
        },
    ),
    "autograd": Suite(
        "1.9.1",
        "tests/test_*.py",
        front=("as_autograd",),
        one_of=32,
    ),
    "chex": Suite(
        "0.1.92",
        "chex/**/*_test.py",
        "absl-py toolz dm-tree cloudpickle",
        skips={
            "Compiled functions are told by the name of a class of jaxlib.": [
                "*::test_is_traceable__with_jit",
                "*::test_incorrect_ordering",
            ],
        },
    ),
    "blackjax": Suite(
        "1.7.1",
        "tests/**/test_*.py",
        "absl-py toolz fastprogress",
        beside="chex jaxopt optax",
        one_of=32,
    ),
    "distrax": Suite(
        "0.1.9",
        "distrax/**/*_test.py",
        "absl-py toolz dm-tree cloudpickle decorator gast mock six",
        beside="chex tfp-nightly",
        one_of=16,
    ),
    "dm_haiku": Suite(
        "0.0.17",
        "haiku/**/*_test.py",
        "absl-py toolz dm-tree cloudpickle tabulate",
        beside="chex jmp optax",
        one_of=16,
        skips={
            "Equations have no stack of names: named_scope marks nothing here.": [
                "*jaxpr_info_test*"
            ],
            "A transformation of its own, made of JAX's classes of traces.": [
                "*to_dot_test*"
            ],
        },
    ),
    "dynamax": Suite(
        "1.0.3",
        "dynamax/**/*_test.py",
        "absl-py toolz dm-tree decorator gast six scikit-learn",
        beside="chex fastprogress jaxtyping optax tfp-nightly wadler-lindig",
        one_of=4,
    ),
    "einops": Suite(
        "0.8.2",
        "einops/tests/test_*.py",
        setting={"EINOPS_TEST_BACKENDS": "numpy,jax"},
    ),
    "flowjax": Suite(
        "19.1.2",
        "tests/**/test_*.py",
        "absl-py beartype tqdm wadler-lindig",
        beside="chex equinox flowjax jaxtyping lineax multipledispatch numpyro "
        "optax paramax toolz",
        one_of=4,
    ),
    "flax": Suite(
        "0.12.8",
        "tests/**/*_test.py",
        "absl-py msgpack pyyaml rich",
        beside="optax treescope",
        one_of=64,
        skips={
            "There is one device if XLA_FLAGS is set after minijax is imported.": [
                "*::test_prefetch_to_device*",
                "*::test_sharding_axis_types1",
            ],
            "The file imports jax._src.tree_util.prefix_errors, which is private.": [
                "*::tests.struct_test"
            ],
            "A reference that a compiled function returns is refused.": [
                "*::test_mutable_array_input_output"
            ],
        },
    ),
    "jmp": Suite("0.0.4", "jmp/**/*_test.py", "absl-py"),
    "jraph": Suite(
        "0.0.6.dev0", "jraph/**/*_test.py", "absl-py networkx", beside="dm-haiku jmp"
    ),
    "mctx": Suite(
        "0.0.71", "mctx/**/*_test.py", "absl-py toolz dm-tree", beside="chex"
    ),
    "penzai": Suite(
        "0.2.5",
        "tests/**/*_test.py",
        "absl-py ordered-set treescope msgpack pyyaml rich",
        beside="flax",
        skips={
            "Compiled and eager sums agree to the last bits, not in all of them.": [
                "*::test_jit_wrapper"
            ],
            "An object says where it was made: minijax.dtypes, not jax.dtypes.": [
                "*::test_object_rendering_deprecated_v1_layer_annotations"
            ],
        },
    ),
    "rlax": Suite(
        "0.1.9",
        "rlax/**/*_test.py",
        "absl-py toolz dm-tree decorator gast six cloudpickle",
        beside="chex distrax dm-env dm-haiku jmp optax tfp-nightly",
        one_of=4,
    ),
    "tinygp": Suite(
        "0.3.1",
        "tests/**/test_*.py",
        "absl-py wadler-lindig",
        beside="equinox jaxtyping",
    ),
    "optax": Suite(
        "0.2.8",
        "optax/**/*_test.py",
        "absl-py scikit-learn msgpack pyyaml rich",
        beside="flax treescope",
        skips={
            "There is no HLO: a lowered program has other dialects.": [
                "*::test_abs_sqr_hlo_equivalence*"
            ],
            "The message says the same in other words.": [
                "*::test_bad_structure_raises",
                "*::test_selective_bad_structure",
            ],
        },
        one_of=8,
    ),
}

ABSENT = {
    "array-api-tests": "is not on the package index. Its commit 55fcc60, with 64 bits "
    "and three examples for each test, has 1,366 tests that run: 1,321 pass. Of the "
    "others 44 fail over JAX 0.10.2 too, and one gives the same numbers there",
    "brax": "has tests (0.14.2), which were not run over JAX to compare with",
    "jaxopt": "has no tests in its source archive (0.8.5)",
    "equinox": "has no tests in its source archive (0.13.8), as lineax, diffrax, "
    "optimistix, jaxtyping and evosax",
}
