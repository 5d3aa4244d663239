"""Kernels in CUDA C do what NumPy's interpreter does, in any order of threads."""

import re

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import lax, make_jaxpr
from minijax.fusion.fusion_pass import fuse
from minijax.gpu.block_kernels import render_block_loop
from minijax.gpu.codegen import LaunchShape, cuda_function, default_launch
from minijax.kernels.ir import AXIS_NAMES, Affine, Parameter, Store
from minijax.kernels.loop_nests import Kernel, interpret, load_node, op_node
from minijax.kernels.lowering import lower
from minijax.memory.aliasing import alias_launch_buffers
from minijax.memory.buffer_assignment import may_overwrite
from minijax_book import emulator
from tests import cuda_cases, kernel_cases
from tests.commands import blocks
from tests.cuda_cases import LAUNCHES, SCHEDULES, CudaLibrary

pytestmark = pytest.mark.skipif(not emulator.is_there(), reason="no C++ compiler here")

CHANCES = {"affine": kernel_cases.Chance, "computed": kernel_cases.PlacesChance}


@pytest.mark.parametrize("how", LAUNCHES)
@pytest.mark.parametrize("kind", CHANCES)
@pytest.mark.parametrize("seed", blocks(1, 20, start=100))
def test_random_kernels(how, kind, seed):
    met = kernel_cases.of_random_kernels(seed, 20, CHANCES[kind])
    assert not cuda_cases.differences(met, how)


def kernels_of(f, *args):
    return [step.kernel for step in fuse(lower(make_jaxpr(f)(*args))).steps]


def softmax(x):
    e = jnp.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def variance(x):
    return ((x - x.mean(axis=0)) ** 2).sum(axis=0)


PROGRAMS = {
    "softmax": softmax,
    "softmax of halves": lambda x: softmax(x.astype("float16")),
    "column sums": lambda x: x.sum(axis=0),
    "variances": variance,
    "all": lambda x: (x * x).sum(),
    "where the largest are": lambda x: jnp.argmax(x, axis=1),
    "where the smallest are, by column": lambda x: jnp.argmin(x, axis=0),
    "running totals": lambda x: jnp.cumsum(x, axis=0),
    "any": lambda x: (x > 2).any(axis=1),
    "turned": lambda x: x.T + 1,
    "bits": lambda x: x.astype("int32") ^ 5,
}
SHAPES = [(1, 1), (5, 32), (7, 33), (33, 9), (3, 100), (0, 4), (4, 0)]


def met_by(f, x):
    """Return the first kernel of a function, and its memory before and after."""
    kernel, *_ = kernels_of(f, x)
    before = [np.zeros(b.size, b.dtype) for b in kernel.parameters]
    before[0][:] = x.reshape(-1)
    memory = {b.name: array.copy() for b, array in zip(kernel.parameters, before)}
    interpret(kernel, memory)
    after = [memory[b.name] for b in kernel.parameters]
    return kernel, *[[a.view(np.uint8) for a in arrays] for arrays in (before, after)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_of_programs(name):
    met, rng = [], np.random.default_rng(3)
    for shape in SHAPES:
        x = rng.standard_normal(shape, np.float32)
        x[x > 1.5] = np.nan if "where" in name else 2
        if x.size or name in ("column sums", "all", "any", "turned", "bits"):
            met.append(met_by(PROGRAMS[name], x))
    assert met
    for how in LAUNCHES:
        assert not cuda_cases.differences(met, how)


@pytest.mark.parametrize("shape", [(70, 100), (3, 5000)])
def test_results_are_the_same_bits_in_any_order_of_threads(shape):
    [kernel] = kernels_of(softmax, jnp.zeros(shape))
    x, results = np.random.default_rng(0).standard_normal(shape, np.float32), set()
    launch = default_launch(kernel)
    library = CudaLibrary({"k": kernel})
    for seed in range(4):
        out = np.empty(shape, np.float32)
        given = [x.reshape(-1), out.reshape(-1)]
        grid, block = (launch.blocks(kernel),), (launch.threads,)
        library.module.launch("k", grid, block, given, seed=seed)
        results.add(out.tobytes())
    assert len(results) == 1


TYPES = r"(?:bool|int|short|char|unsigned|long long|float|double|Vector<[^>]*>)"
OWN = re.compile(rf"\b{TYPES} (\w+?)(?:_first|_best|_other|_before|_memory)?[ \[;,)]")
# What the writers of CUDA C call threads, teams, lanes and the like.
CALLED = {*"acdtuw", *"block team busy run lane row base within live left".split()}


def parameters_of_all(kernels):
    """The names of the parameters of kernels."""
    return {parameter.name for each in kernels for parameter in each.parameters}


def test_no_variable_is_called_as_an_axis_or_a_parameter_may_be():
    kernels = [kernel for kernel, _ in kernel_cases.random_kernels(1, 60)]
    kernels += [k for k, _ in kernel_cases.random_kernels(2, 60, cuda_cases.CardChance)]
    kernels += [k for k, _ in kernel_cases.random_kernels(3, 60, cuda_cases.RowChance)]
    loop = lambda x: lax.while_loop(  # noqa: E731
        lambda x: x.sum() < 9, lambda x: x + x.mean(), x
    )
    steps = fuse(lower(make_jaxpr(loop)(jnp.ones(9)))).steps
    [text] = [render_block_loop(step, "loop") for step in steps if step.programs]
    declared = {*OWN.findall(text)} - {*AXIS_NAMES[:1]}
    for how in [*LAUNCHES, *SCHEDULES]:
        for kernel in kernels:
            text = cuda_function(kernel, cuda_cases.forced(kernel, how), "k")
            declared |= {*OWN.findall(text)} - {*AXIS_NAMES[: len(kernel.sizes)]}
    plain = {re.sub(r"\d+$", "", name) for name in declared}
    assert plain >= CALLED
    assert declared.isdisjoint(AXIS_NAMES)
    assert declared.isdisjoint(parameters_of_all(kernels))
    assert plain.isdisjoint(["x", "y", "z", "out", "partial", "stage", "carryx"])
    assert len({*AXIS_NAMES}) == 64


def test_a_kernel_of_twelve_axes_that_a_team_shares():
    sizes, turned = (2,) * 11 + (9,), (1, 3, 0, 5, 2, 7, 4, 9, 6, 10, 8, 11)
    x = np.random.default_rng(0).integers(0, 5, sizes).astype(np.float32)
    met = [met_by(lambda x: (x * x.transpose(turned)).sum(-1), x)]
    assert len(met[0][0].sizes) == 12
    for how in ("chosen", "warps", "across"):
        assert not cuda_cases.differences(met, how)


def _without_barrier(text):
    return text.replace("__syncthreads();", "")


def _with_idle_stores(text):
    return text.replace("t == 0 && busy", "t == 0")


def _with_early_returns(text):
    return re.sub(r"const bool busy = (team < \d+);", r"if (!(\1)) return; \g<0>", text)


def _with_one_place(text):
    names = re.findall(r"__shared__ \w+ (\w+)\[", text)
    return re.sub(rf".*__shared__ \w+ {names[1]}\[.*\n", "", text).replace(
        *names[1::-1]
    )


MUTANTS = {
    "no barrier": ("blocks", _without_barrier),
    "no barrier, across": ("across", _without_barrier),
    "idle teams store": ("across", _with_idle_stores),
    "idle teams leave": ("across", _with_early_returns),
    "two folds share their place": ("blocks", _with_one_place),
    "too few turns": ("warps", lambda text: text.replace("d = 16", "d = 8")),
    "all threads store": (
        "warps",
        lambda text: text.replace("if (t == 0", "if (t >= 0"),
    ),
    "each does all turns": ("warps", lambda text: text.replace(" = t;", " = 0;")),
    "no bound on threads": ("alone", lambda text: re.sub(r"if \(team.*", "", text)),
    "one index further": ("alone", lambda text: text.replace("team >=", "team >")),
    "other strides": (
        "chosen",
        lambda text: re.sub(r"i\*(\d+) \+ j", r"j*\1 + i", text),
    ),
    "the last NaN wins": ("warps", lambda text: text.replace(" < v", " > v")),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_of_the_text_are_found(name):
    how, edit = MUTANTS[name]
    met, rng = [], np.random.default_rng(3)
    functions = [softmax, variance, PROGRAMS["where the largest are"]]
    for f in functions:
        x = rng.standard_normal((70, 100), np.float32)
        if f is functions[2]:
            x[:, ::7] = np.nan
        met.append(met_by(f, x))
    made = []

    def library_of(kernels):
        made.append(CudaLibrary(kernels, how, edit))
        return made[-1]

    wrong = kernel_cases.differences(met, library_of)
    assert wrong or made[0].complaints


def test_indices_have_64_bits_where_32_do_not_reach():
    float32 = np.dtype("float32")
    for size, kind in [(2**20, "int"), (2**29, "long long")]:
        x, out = Parameter("x", float32, size), Parameter("out", float32, size)
        a = load_node(x, Affine(0, (1,)))
        y = op_node("add", a, a)
        store = Store(out, Affine(0, (1,)), y)
        text = cuda_function(
            Kernel("k", (size,), (x, out), (a, y), (store,)), LaunchShape((0,)), "k"
        )
        assert f"const {kind} team" in text


def test_what_is_only_read_is_const_and_what_is_both_may_be_one():
    float32 = np.dtype("float32")
    x, out = Parameter("x", float32, 4), Parameter("out", float32, 4)
    a, b = load_node(x, Affine(0, (1,))), load_node(out, Affine(0, (1,)))
    y = op_node("add", a, b)
    kernel = Kernel("k", (4,), (x, out), (a, b, y), (Store(out, Affine(0, (1,)), y),))
    text = cuda_function(kernel, LaunchShape((0,)), "k")
    assert "k(const float* __restrict__ x,\n    float* out)" in text


IN_PLACE = {
    "rows": (softmax, (70, 100)),
    "what a team adds to": (lambda x, y: y + x.sum(axis=1), (70, 100), (70,)),
    "what a column adds to": (lambda x, y: y * y + x.sum(axis=0), (100, 70), (70,)),
    "what all add to": (lambda x, y: y + x.sum(), (1000,), ()),
    "less their mean": (lambda x: x - x.mean(axis=0), (70, 40)),
    "each": (lambda x: jnp.maximum(x, 0), (1001,)),
}


def met_in_place():
    """What kernels meet that write over an operand."""
    rng, met = np.random.default_rng(0), []
    for f, *shapes in IN_PLACE.values():
        zeros = [jnp.zeros(shape) for shape in shapes]
        for step in fuse(lower(make_jaxpr(f)(*zeros))).steps:
            pairs = [(old, new) for old in step.reads for new in step.writes]
            for pair in [pair for pair in pairs if may_overwrite(step, *pair)]:
                kernel = alias_launch_buffers(step, [pair]).kernel
                memory = {
                    x.name: rng.standard_normal(x.size).astype(x.dtype)
                    for x in kernel.parameters
                }
                met.append(cuda_cases.met_with(kernel, memory))
    return met


@pytest.mark.parametrize("how", [*LAUNCHES, *SCHEDULES])
def test_results_over_operands(how):
    met = met_in_place()
    assert len(met) >= len(IN_PLACE)
    assert not cuda_cases.differences(met, how)


@pytest.mark.parametrize("how", ["chosen", "warps", "blocks", "across"])
def test_results_over_operands_need_their_barrier(how):
    def hasty(text):
        return re.sub(r"  __syncthreads\(\);\n(  if \(t == 0)", r"\1", text)

    assert cuda_cases.notices(met_in_place(), how, hasty)
