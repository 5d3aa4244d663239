"""Modules of `jax.interpreters`, and what else packages on top of JAX ask for."""

import contextlib
import pkgutil
import re
import sys
from functools import partial
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import minijax  # noqa: E402

F32 = np.dtype("float32")


def api(root):
    """Return the modules of one package."""
    module = lambda path: import_module(f"{root}.{path}")  # noqa: E731
    return SimpleNamespace(
        jax=import_module(root), np=module("numpy"), lax=module("lax"),
        core=module("core"), xc=module("extend.core"), lu=module("extend.linear_util"),
        pe=module("interpreters.partial_eval"), ad=module("interpreters.ad"),
        xla=module("interpreters.xla"), batching=module("interpreters.batching"),
        mlir=module("interpreters.mlir"), util=module("api_util"),
        primitives=module("extend.core.primitives"),
        own=module("custom_derivatives"),
    )  # fmt: skip


OURS, THEIRS = api("minijax"), api("jax")
BOTH = OURS, THEIRS


def numbers(tree):
    """Return what may be compared of a tree: shapes, dtypes and numbers."""
    leaves = [
        np.asarray(x) for x in jax.tree.leaves(minijax.tree.map(np.asarray, tree))
    ]
    return [
        (x.shape, x.dtype, (x if x.dtype == bool else np.round(x, 4)).tolist())
        for x in leaves
    ]


def agree(program):
    """Run a program of both packages, and compare."""
    ours, theirs = (program(j) for j in BOTH)
    assert numbers(ours) == numbers(theirs)


# Known and unknown values.


def loop(j, n, x):
    return j.lax.scan(lambda c, a: (c * 2, (c, a + 1)), n, x)


def nested(j, n, x):
    inner = j.jax.jit(lambda a, b: (a * 3, a * b, j.np.sin(b)))
    return inner(n, x)


def branch(j, n, x):
    return j.lax.cond(n > 0, lambda a: (n * 1, a), lambda a: (n * 2, 2 * a), x)


def branch_on_unknown(j, n, x):
    return j.lax.cond(x[0] > 0, lambda: n, lambda: n + 1), n + 5


def counted(j, n, x):
    step = lambda i, c: (c[0] + 1, c[1] * 2)  # noqa: E731
    return j.lax.fori_loop(0, 3, step, (n, x))


def differentiated(j, n, x):
    return j.jax.grad(lambda a: (a**3).sum())(x), j.jax.grad(lambda a: a**3)(n)


def mapped(j, n, x):
    return j.jax.vmap(lambda a: a * n)(x), j.jax.vmap(lambda a: a * n)(np.ones(2, F32))


def with_own_rule(j, n, x):
    @j.jax.custom_jvp
    def f(a, b):
        return a * b

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0] * 7))
    return f(x, n), f(n, n), j.jax.jvp(f, (n, n), (n, n))[1]


def remembered(j, n, x):
    return j.jax.checkpoint(lambda a, b: (a * 2, b * a))(n, x)


def plain(j, n, x):
    return n * 2, x * n, 3.0, n, x


SPLITS = [
    plain, loop, nested, branch, branch_on_unknown, counted, differentiated, mapped,
    with_own_rule, remembered,
]  # fmt: skip


def split(j, f, unknown, instantiate=False):
    """Split a function of a scalar and a vector; return what may be compared."""
    given = [np.float32(2.0), np.arange(1, 4, dtype=F32)]
    pvals = [
        j.pe.PartialVal.unknown(j.core.ShapedArray(x.shape, x.dtype))
        if name in unknown
        else j.pe.PartialVal.known(j.np.asarray(x))
        for name, x in zip("nx", given, strict=True)
    ]
    trees = []

    def flat(n, x):
        leaves, tree = j.jax.tree.flatten(f(j, n, x))
        trees.append(tree)
        return leaves

    info = j.util.debug_info("split", flat, tuple(given), {})
    fun = j.lu.wrap_init(flat, debug_info=info)
    jaxpr, outs, consts = j.pe.trace_to_jaxpr_nounits(fun, pvals, instantiate)
    args = [x for name, x in zip("nx", given, strict=True) if name in unknown]
    later = iter(j.core.eval_jaxpr(jaxpr, consts, *args))
    known = [pval.is_known() for pval in outs]
    values = [pval.get_known() if pval.is_known() else next(later) for pval in outs]
    types = [str(pval.get_aval()) for pval in outs]
    return known, types, numbers([np.asarray(x) for x in values])


@pytest.mark.parametrize("unknown", ["", "n", "x", "nx"])
@pytest.mark.parametrize("f", SPLITS)
def test_values_that_are_known(f, unknown):
    ours, theirs = (split(j, f, unknown) for j in BOTH)
    assert ours[1:] == theirs[1:]
    # What JAX leaves to the program although it could be known is no promise.
    assert all(one or not other for one, other in zip(ours[0], theirs[0], strict=True))
    if f in (plain, nested, loop, differentiated, mapped):
        assert ours[0] == theirs[0]


def test_known_results_are_written_down_if_that_is_asked_for():
    for instantiate in (True, [False, True, True, False, True]):
        ours, theirs = (split(j, plain, "x", instantiate) for j in BOTH)
        assert ours == theirs


def test_splits_inside_of_transformations():
    def inner(j, x):
        pvals = [j.pe.PartialVal.known(x * 2)]
        pvals += [j.pe.PartialVal.unknown(j.core.ShapedArray((), F32))]
        flat = lambda a, b: [a + 1, a * b]  # noqa: E731
        info = j.util.debug_info("split", flat, (1, 2), {})
        fun = j.lu.wrap_init(flat, debug_info=info)
        jaxpr, [known, unknown], consts = j.pe.trace_to_jaxpr_nounits(fun, pvals)
        assert known.is_known() and not unknown.is_known()
        return known.get_known() * j.core.eval_jaxpr(jaxpr, consts, 3.0)[0]

    for around in (
        lambda j, f: j.jax.jit(f)(2.0),
        lambda j, f: j.jax.grad(f)(2.0),
        lambda j, f: j.jax.vmap(f)(j.np.arange(3.0)),
        lambda j, f: j.jax.jit(j.jax.vmap(j.jax.grad(f)))(j.np.arange(3.0)),
    ):
        agree(lambda j, around=around: around(j, partial(inner, j)))


def test_programs_and_what_nothing_needs():
    def texts(j):
        flat = lambda a, b: [j.lax.sin(a), a * b, j.lax.cos(b)]  # noqa: E731
        avals = [j.core.ShapedArray((), F32)] * 2
        info = j.util.debug_info("trace", flat, (1, 2), {})
        fun = j.lu.wrap_init(flat, debug_info=info)
        jaxpr, outs, consts = j.pe.trace_to_jaxpr_dynamic(fun, avals)
        less = [
            j.pe.dce_jaxpr(jaxpr, used, keep)
            for used, keep in [
                ([True, False, False], False), ([False] * 3, [True, False]),
                (True, False), ([False, True, False], True), (False, False),
            ]
        ]  # fmt: skip
        return str(jaxpr), list(map(str, outs)), consts, [(str(a), b) for a, b in less]

    ours, theirs = map(texts, BOTH)
    assert ours == theirs


def test_partial_values_are_checked():
    fun = SimpleNamespace(call_wrapped=lambda x: [x])
    with pytest.raises(TypeError, match=r"pvals\[0\] should be a PartialVal, not 1.0"):
        OURS.pe.trace_to_jaxpr_nounits(fun, [1.0])
    known = [OURS.pe.PartialVal.known(1.0)]
    with pytest.raises(ValueError, match="`instantiate` has 2 flags for 1 values"):
        OURS.pe.trace_to_jaxpr_nounits(fun, known, [True, True])


# Rules of the package's primitives, read and replaced.


def test_primitives_with_several_results_are_known():
    for place in ("lax", "primitives"):
        ours, theirs = getattr(OURS, place), getattr(THEIRS, place)
        names = [name for name in dir(ours) if name.endswith("_p")]
        names = [name for name in names if hasattr(theirs, name)]
        flags = {name: getattr(ours, name).multiple_results for name in names}
        assert flags == {name: getattr(theirs, name).multiple_results for name in names}
        calls = {name: getattr(ours, name).call_primitive for name in names}
        assert calls == {name: getattr(theirs, name).call_primitive for name in names}


def flags_of_all(root, kind):
    """Return by name whether the primitives of a package have several results."""
    for module in pkgutil.walk_packages(import_module(root).__path__, root + "."):
        if not re.search(r"_test|test_|mosaic|pallas|tpu|tools|__main__", module.name):
            with contextlib.suppress(ImportError):
                import_module(module.name)
    modules = [sys.modules[n] for n in [*sys.modules] if n.startswith(root + ".")]
    values = [value for module in modules for value in vars(module).values()]
    return {p.name: p.multiple_results for p in values if issubclass(type(p), kind)}


def test_each_primitive_says_how_many_results_it_has():
    ours = flags_of_all("minijax", minijax.core.Primitive)
    theirs = flags_of_all("jax._src", jax.extend.core.Primitive)
    shared = ours.keys() & theirs.keys()
    assert len(shared) > 160
    assert {n: ours[n] for n in shared} == {n: theirs[n] for n in shared}


def test_bind_returns_what_the_flag_says():
    def run(j):
        lax, x = j.lax, j.np.array([3.0, 1.0])
        total = lax.add_p.bind(x, x)
        both = lax.sort_p.bind(x, dimension=0, is_stable=True, num_keys=1)
        staged = j.jax.jit(lambda x: lax.mul_p.bind(lax.neg_p.bind(x), x))(x)
        assert isinstance(lax.add_p, j.xc.Primitive) and isinstance(both, list)
        aval = lax.neg_p.abstract_eval(j.core.ShapedArray((2,), F32))
        aval = aval[0] if isinstance(aval, tuple) else aval  # JAX adds the effects
        assert (aval.shape, aval.dtype) == ((2,), F32)
        return total, both, staged, lax.add_p.impl(x, x)

    agree(run)


def test_rules_are_read():
    def read(j):
        zero = j.ad.Zero(j.jax.typeof(1.0))
        lhs, x = j.ad.UndefinedPrimal(j.jax.typeof(1.0)), j.np.float32(3.0)
        jvp, transpose = j.ad.primitive_jvps, j.ad.primitive_transposes
        assert j.lax.cos_p in jvp and j.lax.cos_p not in transpose
        assert jvp.get(j.xc.Primitive("unheard of")) is None
        with pytest.raises(KeyError):
            transpose[j.lax.cos_p]
        out, move = jvp[j.lax.neg_p]((1.0,), (zero,))
        assert type(move) is j.ad.Zero
        return [
            jvp[j.lax.add_p]((1.0, x), (x, zero)), jvp[j.lax.neg_p]((x,), (x,)), out,
            jvp[j.lax.sort_p](
                (j.np.array([2.0, 1.0]),), (j.np.array([5.0, 6.0]),),
                dimension=0, is_stable=True, num_keys=1,
            ),
            transpose[j.lax.neg_p](x, lhs),
            j.ad.get_primitive_transpose(j.lax.neg_p)(x, lhs),
            j.batching.fancy_primitive_batchers[j.lax.neg_p](
                SimpleNamespace(name=None, size=2, explicit_mesh_axis=None),
                (j.np.ones((3, 2)),), (1,),
            )[0],
        ]  # fmt: skip

    agree(read)


def test_rules_are_replaced_and_put_back():
    def replaced(j):
        old = j.ad.primitive_jvps[j.lax.erf_p]
        kinds = []

        def rule(primals, tangents, **params):
            kinds.extend(map(type, (primals, tangents)))
            out, move = old(primals, tangents, **params)
            return out, 10 * move

        x = j.np.float32(0.25)
        j.ad.primitive_jvps[j.lax.erf_p] = rule
        try:
            assert j.ad.primitive_jvps[j.lax.erf_p] is rule
            found = [j.jax.jvp(lambda a: j.lax.erf(a), (x,), (x,))]
        finally:
            j.ad.primitive_jvps[j.lax.erf_p] = old
        assert kinds == [tuple, tuple]
        return [*found, j.jax.jvp(lambda a: j.lax.erf(a), (x,), (x,))]

    agree(replaced)


def test_transposes_and_batchers_are_replaced():
    def replaced(j):
        x, seen = j.np.arange(3.0), []
        old = j.ad.primitive_transposes[j.lax.rev_p]
        fancy = j.batching.fancy_primitive_batchers
        batcher = fancy[j.lax.is_finite_p]

        def each(args, dims, **params):
            seen.append((type(args), type(dims), hash(dims) is not None))
            return args[0] > 1, dims[0]

        doubled = lambda ct, a, **params: [2 * old(ct, a, **params)[0]]  # noqa: E731
        try:
            j.ad.primitive_transposes[j.lax.rev_p] = doubled
            j.batching.primitive_batchers[j.lax.is_finite_p] = each
            turned = lambda a: (j.lax.rev(a, (0,)) * x).sum()  # noqa: E731
            found = j.jax.grad(turned)(x), j.jax.vmap(j.lax.is_finite)(x)
        finally:
            j.ad.primitive_transposes[j.lax.rev_p] = old
            fancy[j.lax.is_finite_p] = batcher
        assert seen == [(tuple, tuple, True)]
        return found, j.jax.grad(turned)(x), j.jax.vmap(j.lax.is_finite)(x)

    agree(replaced)


def test_what_is_not_mapped_asks_no_rule():
    def unmapped(j):
        p = j.xc.Primitive("unmapped")
        p.def_impl(lambda x: x)
        p.def_abstract_eval(lambda x: x)
        j.batching.primitive_batchers[p] = None  # would fail if it were called
        return j.jax.vmap(lambda x: x + p.bind(1.0))(j.np.arange(2.0))

    agree(unmapped)


def test_calls_call():
    def called(j):
        sine = lambda x: [j.np.sin(x)]  # noqa: E731
        info = j.util.debug_info("call", sine, (1.0,), {})
        fun = j.lu.wrap_init(sine, debug_info=info)
        calls = j.primitives.call_p, j.primitives.closed_call_p
        assert list(map(str, calls)) == ["call", "closed_call"]
        assert all(p.call_primitive and p.multiple_results for p in calls)
        call = lambda x: calls[0].bind(x, subfuns=(fun,))[0]  # noqa: E731
        x = j.np.float32(0.5)
        return call(x), j.jax.jit(call)(x), j.jax.grad(call)(x)

    agree(called)
    assert OURS.xc.TraceTag() == OURS.xc.TraceTag() and len({OURS.xc.TraceTag()}) == 1


# Lowerings.


def lowered(j, evaluation=False):
    """Return a primitive that `mlir.lower_fun` says what to do for."""
    p = j.xc.Primitive("scaled_tanh")
    p.def_abstract_eval(lambda x, *, by: j.core.ShapedArray(x.shape, x.dtype))
    if evaluation:
        p.def_impl(partial(j.xla.apply_primitive, p))
    fun = j.mlir.lower_fun(lambda x, *, by: j.np.tanh(x) * by, multiple_results=False)
    j.mlir.register_lowering(p, fun)
    j.batching.primitive_batchers[p] = lambda args, dims, **how: (
        p.bind(*args, **how), dims[0],
    )  # fmt: skip
    j.ad.primitive_jvps[p] = lambda primals, tangents, by: (
        p.bind(*primals, by=by), by * tangents[0] / j.np.cosh(primals[0]) ** 2,
    )  # fmt: skip
    return p


@pytest.mark.parametrize("backend", ["cpu", "python", "interpreter"])
def test_compiled_programs_do_what_lowerings_say(backend):
    def compiled(j):
        f = lambda x: lowered(j).bind(x, by=3) + 1  # noqa: E731
        x = j.np.arange(3.0, dtype="float32")
        jit = j.jax.jit
        return [
            jit(f)(x),
            jit(j.jax.vmap(f))(x),
            jit(lambda x: j.jax.jvp(f, (x,), (x,)))(x),
        ]

    with minijax.config.override("minijax_backend", backend):
        agree(compiled)


def test_primitives_are_evaluated_by_compiling():
    def evaluated(j):
        p, x = lowered(j, evaluation=True), j.np.float32(0.5)
        other = j.xc.Primitive("bare")
        with pytest.raises(NotImplementedError, match="'bare' not found"):
            j.xla.apply_primitive(other, x) if j is OURS else j.jax.jit(bare(j, other))(
                x
            )
        return [
            p.bind(x, by=2), j.jax.jit(lambda x: p.bind(x, by=2))(x),
            j.jax.grad(lambda x: p.bind(x, by=2))(x), j.xla.apply_primitive(p, x, by=4),
            j.xla.apply_primitive(j.lax.neg_p, x),
        ]  # fmt: skip

    agree(evaluated)


def bare(j, primitive):
    primitive.def_abstract_eval(lambda x: x)
    return primitive.bind


def test_lowerings_call_python_and_know_platforms():
    def calls(j):
        p = j.xc.Primitive("host_sine")
        p.multiple_results = True
        p.def_abstract_eval(lambda x: [x])

        def lower(ctx, x):
            outs, _, keep = j.mlir.emit_python_callback(
                ctx, lambda a: (np.sin(a),), None, [x], ctx.avals_in, ctx.avals_out,
                has_side_effect=False, returns_token=False,
            )  # fmt: skip
            ctx.module_context.add_keepalive(keep)
            return outs

        j.mlir.register_lowering(p, lower, platform="cpu")
        with pytest.raises(NotImplementedError, match="unknown platform abacus"):
            j.mlir.register_lowering(p, lower, platform="abacus")
        return j.jax.jit(lambda x: p.bind(x)[0] * 2)(j.np.float32(0.5))

    agree(lambda j: calls(j) if j is OURS else 2 * np.sin(np.float32(0.5)))


def test_lowerings_that_do_not_fit_are_refused():
    p = OURS.xc.Primitive("halved")
    p.def_abstract_eval(lambda x: x)
    OURS.mlir.register_lowering(p, OURS.mlir.lower_fun(lambda x: [x[:1], x]))
    with pytest.raises(TypeError, match="lowering of 'halved' returned"):
        minijax.jit(p.bind)(np.ones(2, F32))
    other = OURS.xc.Primitive("elsewhere")
    other.def_abstract_eval(lambda x: x)
    OURS.mlir.register_lowering(other, OURS.mlir.lower_fun(lambda x: [x]), "tpu")
    with pytest.raises(NotImplementedError, match="not found for platform cpu"):
        minijax.jit(other.bind)(1.0)


class Variable:
    """An array of a library's own."""

    def __init__(self, value):
        self.value = np.asarray(value)

    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.value, dtype)


@pytest.mark.filterwarnings("ignore")
def test_classes_of_libraries_become_arrays():
    handlers, types = OURS.xla.canonicalize_dtype_handlers, OURS.core.ShapedArray
    handlers[Variable] = handlers[np.ndarray]
    OURS.xla.pytype_aval_mappings[Variable] = OURS.xla.pytype_aval_mappings[np.ndarray]
    x = Variable(np.arange(3.0))
    assert minijax.typeof(x) == types((3,), F32)
    np.testing.assert_allclose(minijax.jit(lambda a: a * 2)(x), [0, 2, 4])


# Types, zeros, rules of own derivatives, names.


def test_types_of_tangents_and_of_places():
    def types(j):
        given = (1, 2.0, True, j.np.ones(2), j.np.arange(2), 1j)
        made = j.core.ShapedArray(
            (2,), F32, weak_type=True, sharding=None,
        )  # fmt: skip
        return [str(j.jax.typeof(x).to_tangent_aval()) for x in given], str(made)

    ours, theirs = map(types, BOTH)
    assert ours == theirs
    aval = OURS.core.ShapedArray((2,), F32, sharding=None, memory_space=None)
    assert aval.update(sharding=None, memory_space=None) == aval


def test_zeros_of_trees():
    def zeros(j, symbolic):
        tree = {"a": 1.0, "b": (j.np.ones(2), j.np.arange(3)), "c": None}
        found = j.own.zero_from_primal(tree, symbolic_zeros=symbolic)
        return j.jax.tree.map(lambda x: (x.shape, x.dtype, type(x).__name__), found)

    ours, theirs = (zeros(j, True) for j in BOTH)
    assert ours == theirs
    ours, theirs = (zeros(j, False) for j in BOTH)
    assert [x[:2] for x in (ours["a"], *ours["b"])] == [
        x[:2] for x in (theirs["a"], *theirs["b"])
    ]


AROUND = {
    "grad of jit": lambda j, f: j.jax.grad(j.jax.jit(f))(3.0),
    "jit of grad of jit": lambda j, f: j.jax.jit(j.jax.grad(j.jax.jit(f)))(3.5),
    "grad of checkpoint": lambda j, f: j.jax.grad(j.jax.checkpoint(f))(3.0),
    "grad of scan": lambda j, f: j.jax.grad(
        lambda x: j.lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]
    )(j.np.float32(3.0)),
}


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("number", [2.0, 2, True, np.float32(2.0)])
def test_rules_get_arrays_for_numbers_in_programs(around, symbolic, number):
    def seen(j):
        kinds = []

        def note(*args):
            args = [getattr(x, "value", x) if symbolic else x for x in args]
            kinds.append([(isinstance(x, j.core.Tracer), np.shape(x)) for x in args])
            return args

        f = j.jax.custom_vjp(lambda x, y: x * y)
        f.defvjp(
            lambda x, y: (x * note(x, y)[1], None) if not symbolic
            else (x.value * note(x, y)[1], None),
            lambda res, ct: (ct, None), symbolic_zeros=symbolic,
        )  # fmt: skip
        g = j.jax.custom_jvp(lambda x, y: x * y)

        def rule(primals, tangents):
            x, y = note(*primals)
            return x * y, tangents[0] * y

        g.defjvp(rule, symbolic_zeros=symbolic)
        for own in (f, g):
            AROUND[around](j, lambda x, own=own: j.np.real(own(x, number)))
        return kinds

    ours, theirs = map(seen, BOTH)
    assert ours[0] == theirs[0] and ours[-1] == theirs[-1]
    assert all(tracer for call in ours for tracer, _ in call)


class Odd:
    """A callable whose name is no text."""

    __name__ = 3

    def __call__(self, x):
        return x * 2


TRANSFORMED = {
    "grad": lambda j: j.jax.grad(Odd())(1.0),
    "vmap": lambda j: j.jax.vmap(Odd())(j.np.ones(2)),
    "checkpoint": lambda j: j.jax.checkpoint(Odd())(1.0),
    "jacfwd": lambda j: j.jax.jacfwd(Odd())(1.0),
    "jacrev": lambda j: j.jax.jacrev(Odd())(1.0),
    "hessian": lambda j: j.jax.hessian(Odd())(1.0),
    "value_and_grad": lambda j: j.jax.value_and_grad(Odd())(1.0),
    "jvp": lambda j: j.jax.jvp(Odd(), (1.0,), (1.0,)),
    "pmap": lambda j: j.jax.pmap(Odd())(j.np.ones(1)),
}


@pytest.mark.parametrize("name", TRANSFORMED)
@pytest.mark.filterwarnings("ignore")
def test_callables_whose_name_is_no_text(name):
    agree(TRANSFORMED[name])


def test_functions_of_shapes_take_such_callables():
    assert minijax.eval_shape(Odd(), 1.0).shape == ()
    assert len(minijax.make_jaxpr(Odd())(1.0).eqns) == 1
    assert minijax.numpy.vectorize(Odd())(np.ones(2)).tolist() == [2, 2]


def test_device_get_leaves_tracers():
    for j in BOTH:
        j.jax.jit(lambda x, j=j: [x * j.jax.device_get(x)])(1.0)
        assert j.jax.grad(lambda x, j=j: j.jax.device_get(x) * 3)(1.0) == 3
        assert j.jax.vmap(j.jax.device_get)(j.np.arange(2.0)).shape == (2,)
