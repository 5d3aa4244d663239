"""Bad input: calls that must fail, with the class and the facts of the message.

`ROWS` maps a name to `(call, class, facts)`: `call(j)` is wrong in the namespace `j`,
minijax or JAX; the error is of JAX's class of that name and tells all of the facts.
"""

from functools import partial
from importlib import import_module

import numpy as np

from tests import bad_control

F32 = np.float32
V, M = np.ones(3, F32), np.ones((2, 3), F32)


def leak(j):
    kept = []
    j.grad(lambda x: [kept.append(x), x][1])(1.0)
    return kept[0] + 1


def branch(j):
    return j.make_jaxpr(lambda x: 1.0 if x > 0 else 2.0)(1.0)


def tree(j, f, *trees):
    return j.tree_util.tree_map(f, *trees)


def two(a, b):
    return a


ROWS = {
    # shapes, dtypes and axes
    "add shapes": (
        lambda j: j.numpy.ones(3) + j.numpy.ones(4),
        "TypeError",
        ["(3,)", "(4,)"],
    ),
    "lax dtypes": (
        lambda j: j.lax.add(V, np.arange(3, dtype="int32")),
        "TypeError",
        ["float32", "int32"],
    ),
    "sin of integers": (
        lambda j: j.lax.sin(np.arange(3, dtype="int32")),
        "TypeError",
        ["sin", "int32"],
    ),
    "dot shapes": (lambda j: j.numpy.dot(M, M), "TypeError", ["(3,)", "(2,)"]),
    "sum axis": (lambda j: j.numpy.sum(V, axis=1), "ValueError", ["1", "dimension 1"]),
    "reshape": (
        lambda j: j.numpy.reshape(j.numpy.ones(3), (2, 2)),
        "TypeError",
        ["(3,)", "(2, 2)"],
    ),
    "transpose": (
        lambda j: j.numpy.transpose(M, (0, 0)),
        "TypeError",
        ["(0, 0)", "(2, 3)"],
    ),
    "expand_dims": (lambda j: j.numpy.expand_dims(V, 5), "ValueError", ["5"]),
    "squeeze": (lambda j: j.numpy.squeeze(V, 0), "ValueError", ["(3,)"]),
    "concatenate": (
        lambda j: j.numpy.concatenate([M, np.ones((2, 4), F32)]),
        "TypeError",
        ["(2, 3)", "(2, 4)"],
    ),
    "broadcast_to": (lambda j: j.numpy.broadcast_to(V, (2,)), "ValueError", ["3", "2"]),
    "not an array": (lambda j: j.numpy.sin("a"), "TypeError", ["str"]),
    "list": (lambda j: j.numpy.sin([1.0]), "TypeError", ["sin", "list", "0"]),
    "max of nothing": (lambda j: j.numpy.max(np.ones(0, F32)), "ValueError", ["max"]),
    "unhashable": (lambda j: {j.numpy.ones(3): 1}, "TypeError", ["unhashable"]),
    "assignment": (
        lambda j: j.numpy.ones(3).__setitem__(0, 1),
        "TypeError",
        ["immutable", ".at"],
    ),
    # tracers
    "leak": (leak, "UnexpectedTracerError", []),
    "if": (branch, "TracerBoolConversionError", ["x"]),
    "float": (
        lambda j: j.make_jaxpr(lambda x: float(x))(1.0),
        "ConcretizationTypeError",
        ["float", "x"],
    ),
    "range": (
        lambda j: j.make_jaxpr(lambda n: list(range(n)))(1),
        "TracerIntegerConversionError",
        ["n"],
    ),
    "numpy": (
        lambda j: j.make_jaxpr(lambda x: np.sin(x))(1.0),
        "TracerArrayConversionError",
        ["numpy"],
    ),
    "float in vmap": (
        lambda j: j.vmap(lambda x: float(x))(V),
        "ConcretizationTypeError",
        ["float"],
    ),
    "text result": (lambda j: j.make_jaxpr(lambda x: "a")(1), "TypeError", ["str"]),
    "unhashable static": (
        lambda j: j.make_jaxpr(lambda x, n: x, static_argnums=1)(1.0, [1]),
        "ValueError",
        ["hash"],
    ),
    # jvp
    "jvp shape": (
        lambda j: j.jvp(j.numpy.sin, (V,), (np.ones(4, F32),)),
        "ValueError",
        ["(3,)", "(4,)"],
    ),
    "jvp dtype": (
        lambda j: j.jvp(j.numpy.sin, (V,), (np.arange(3, dtype="int32"),)),
        "TypeError",
        ["float32", "int32"],
    ),
    "jvp no tuple": (lambda j: j.jvp(j.numpy.sin, V, V), "TypeError", ["tuple"]),
    "jvp trees": (
        lambda j: j.jvp(j.numpy.sin, (V,), (V, V)),
        "TypeError",
        ["structure"],
    ),
    "linearize shape": (
        lambda j: j.linearize(j.numpy.sin, V)[1](np.ones(4, F32)),
        "ValueError",
        ["3", "4"],
    ),
    # vmap
    "vmap sizes": (
        lambda j: j.vmap(lambda d: d["a"])({"a": M, "b": np.ones(5, F32)}),
        "ValueError",
        ["d['a']", "d['b']", "2", "5", "axis 0"],
    ),
    "vmap axis": (
        lambda j: j.vmap(j.numpy.add, in_axes=(0, 3))(V, V),
        "ValueError",
        ["3", "(3,)"],
    ),
    "vmap scalar": (lambda j: j.vmap(j.numpy.sin)(1.0), "ValueError", ["0"]),
    "vmap in_axes": (
        lambda j: j.vmap(lambda x: x, in_axes=(0, 0))(V),
        "ValueError",
        ["in_axes"],
    ),
    "vmap in_axes type": (
        lambda j: j.vmap(lambda x: x, in_axes={"a": 0})(V),
        "TypeError",
        ["in_axes"],
    ),
    "vmap in_axes tree": (
        lambda j: j.vmap(lambda d: d["a"], in_axes=({"a": 0},))({"a": V, "b": V}),
        "ValueError",
        ["in_axes"],
    ),
    "vmap all None": (
        lambda j: j.vmap(two, in_axes=(None, None))(V, V),
        "ValueError",
        ["in_axes"],
    ),
    "vmap out_axes": (
        lambda j: j.vmap(lambda x: x, out_axes=None)(V),
        "ValueError",
        ["out_axes"],
    ),
    "vmap callable": (lambda j: j.vmap(3), "TypeError", ["callable", "3"]),
    "axis name": (lambda j: j.lax.psum(V, "i"), "NameError", ["i"]),
    # trees
    "tree keys": (lambda j: tree(j, two, {"a": 1}, {"b": 1}), "ValueError", ["a", "b"]),
    "tree types": (
        lambda j: tree(j, two, [1, 2], (1, 2)),
        "ValueError",
        ["list", "(1, 2)"],
    ),
    "too few leaves": (
        lambda j: j.tree_util.tree_unflatten(j.tree_util.tree_structure([1, 2]), [1]),
        "ValueError",
        ["2", "1"],
    ),
    # gradients
    "grad vector": (lambda j: j.grad(j.numpy.sin)(V), "TypeError", ["scalar", "(3,)"]),
    "grad tree": (lambda j: j.grad(lambda x: {"a": x})(1.0), "TypeError", ["scalar"]),
    "grad None": (
        lambda j: j.grad(lambda x: None)(1.0),
        "TypeError",
        ["scalar", "None"],
    ),
    "grad integer": (
        lambda j: j.grad(j.numpy.sin)(1),
        "TypeError",
        ["int32", "allow_int"],
    ),
    "grad integer result": (
        lambda j: j.grad(lambda x: x.astype("int32"))(F32(1)),
        "TypeError",
        ["int32", "vjp"],
    ),
    "grad complex": (
        lambda j: j.grad(lambda x: x * 1j)(1.0),
        "TypeError",
        ["complex64", "holomorphic"],
    ),
    "grad argnums": (
        lambda j: j.grad(lambda x: x, argnums=2)(1.0),
        "TypeError",
        ["argnums=2", "3", "1"],
    ),
    "grad argnums type": (
        lambda j: j.grad(lambda x: x, argnums="a")(1.0),
        "TypeError",
        ["integer"],
    ),
    "grad text": (lambda j: j.grad(j.numpy.sin)("a"), "TypeError", ["str"]),
    "grad callable": (lambda j: j.grad(3), "TypeError", ["callable", "3"]),
    "grad aux": (
        lambda j: j.value_and_grad(lambda x: x, has_aux=True)(1.0),
        "TypeError",
        ["aux"],
    ),
    "jacfwd integer": (
        lambda j: j.jacfwd(lambda x: x)(1),
        "TypeError",
        ["int32", "jvp"],
    ),
    "jacfwd argnums": (
        lambda j: j.jacfwd(lambda x: x, argnums=1)(1.0),
        "ValueError",
        ["1"],
    ),
    "vjp shape": (
        lambda j: j.vjp(j.numpy.sin, V)[1](np.ones(4, F32)),
        "ValueError",
        ["float32[4]", "float32[3]"],
    ),
    "vjp tree": (
        lambda j: j.vjp(j.numpy.sin, V)[1]((V, V)),
        "ValueError",
        ["structure"],
    ),
    "transpose of sin": (
        lambda j: j.linear_transpose(j.numpy.sin, 1.0)(1.0),
        "NotImplementedError",
        ["sin"],
    ),
}
ROWS |= bad_control.ROWS

# What decides a program, and depends on the argument n of a jitted function.
CONCRETE = """
    jnp.sum(M, n)|jnp.max(M, axis=n)|jnp.var(M, n)|jnp.expand_dims(M, n)
    jnp.squeeze(M, n)|jnp.moveaxis(M, n, 0)|jnp.flip(M, n)|jnp.roll(M, 1, n)
    jnp.split(M, n)|jnp.array_split(M, n)|jnp.linspace(0, 1, n)|jnp.indices((n, 2))
    jnp.arange(n)|jnp.nonzero(M, size=n)|j.nn.softmax(M, n)
    j.random.permutation(j.random.key(0), n)|j.random.choice(j.random.key(0), n)
    j.ops.segment_sum(V, np.arange(3), n)
    jnp.pad(V, n)|jnp.pad(V, (n, 1))|jnp.pad(M, ((1, n), (0, 0)))
    jnp.histogram(V, n)|jnp.histogram_bin_edges(V, n)|jnp.histogram2d(V, V, n)
    jnp.histogramdd(M, n)|jnp.histogramdd(M, [n, n, n])
    j.lax.top_k(V, n)|j.lax.broadcast(V, (n,))|j.lax.broadcast_in_dim(V, (n, 3), (1,))
    j.lax.dynamic_slice_in_dim(V, 0, 1, axis=n)
    j.lax.dynamic_update_slice_in_dim(V, V, 0, n)
"""
INDICES = """
    jnp.argmax(M, n)|jnp.concatenate([M, M], n)|jnp.stack([M, M], n)
    jnp.transpose(M, (n, 0))|range(n)|[1, 2][n]|jnp.take(M, 0, axis=n)
    jnp.diag(V, n)|jnp.diag(M, n)|jnp.apply_along_axis(jnp.sum, n, M)
    jnp.tensordot(M, M, ((n,), (0,)))|j.lax.transpose(M, (n, 0))|j.lax.sort(M, n)
    j.lax.squeeze(V, (n,))|j.lax.dynamic_slice_in_dim(V, 0, n)|j.lax.index_in_dim(V, n)
    j.lax.slice_in_dim(V, n, 2)|j.lax.slice_in_dim(V, 0, n)
    j.lax.slice_in_dim(V, 0, 2, axis=n)
"""
# JAX has a plain TypeError here, of which ours are.
TYPES = """
    jnp.diagflat(V, n)|jnp.tensordot(M, M, n)|jnp.tensordot(M, M, (n, 0))
    j.scipy.special.logsumexp(M, axis=n)|j.nn.logsumexp(M, axis=n)
    j.lax.iota("float32", n)|j.lax.broadcasted_iota("float32", (n,), 0)
    j.lax.broadcast_in_dim(V, (2, 3), (n,))|j.lax.dynamic_slice(V, (0,), (n,))
    j.lax.slice(V, (n,), (2,))|j.lax.slice(V, (0,), (n,))|j.lax.split(V, (n, 1))
    j.lax.full((n,), 1.0)|j.lax.reshape(V, (n,))|j.lax.rev(M, (n,))
    j.lax.concatenate([M, M], n)|j.lax.expand_dims(V, (n,))|j.lax.integer_pow(V, n)
    j.lax.pad(V, np.float32(0), [(n, 0, 0)])
"""


def with_traced(text, j):
    names = {"j": j, "jnp": j.numpy, "np": np, "M": M, "V": V}
    return j.jit(eval(f"lambda n: {text}", names))(1)


for kind, fact, texts in (
    ("ConcretizationTypeError", "concrete value is expected", CONCRETE),
    ("TracerIntegerConversionError", "argument n", INDICES),
    ("TypeError", "argument n", TYPES),
):
    for text in texts.replace("\n", "|").split("|"):
        if text := text.strip():
            ROWS[text] = partial(with_traced, text), kind, [fact]

# A size or an axis that is no whole number is never cut to one.
FRACTIONS = """
    jnp.tril(M, 1.5)|jnp.triu(M, 0.5)|jnp.tri(2, k=0.5)
    jnp.tile(M, (1.5,))|jnp.repeat(M, 1.5)|jnp.reshape(M, (2.5, 3))
    jnp.linspace(0, 1, 2.5)|jnp.transpose(M, (1.0, 0))|jnp.sum(M, axis=(0.5,))
    j.lax.broadcast(M, (1.5,))|j.lax.broadcast_in_dim(V, (2.5, 3), (1,))
    j.lax.broadcast_in_dim(V, (2, 3), (1.5,))|j.lax.reshape(V, (3.5,))
    j.lax.slice(V, (0.5,), (2,))|j.lax.slice(V, (0,), (2,), (1.5,))|j.lax.rev(M, (0.5,))
    j.lax.transpose(M, (1.5, 0))|j.lax.squeeze(M[None], (0.5,))|j.lax.full((2.5,), 1)
    j.lax.expand_dims(M, (0.5,))|j.lax.reduce_sum(M, axes=(0.5,))
    j.lax.pad(V, np.float32(0), [(0.5, 0, 0)])|j.lax.dynamic_slice(V, (0,), (1.5,))
    j.lax.split(V, (1.5, 1.5))|j.lax.broadcasted_iota("int32", (2.5, 3), 0)
    j.lax.concatenate([M, M], 0.5)|j.lax.argmax(M, 0.5, "int32")
    j.lax.sort(M, dimension=0.5)|j.lax.top_k(M, 1.5)
    j.lax.dot_general(M, M.T, (((1.5,), (0,)), ((), ())))
    j.lax.reduce_window(M, 0.0, j.lax.add, (2.5, 2), (1, 1), "VALID")
    j.lax.reduce_window(M, 0.0, j.lax.add, (2, 2), (1, 1), ((0.5, 0), (0, 0)))
"""
for text in FRACTIONS.replace("\n", "|").split("|"):
    if text := text.strip():
        call = eval(f"lambda j: {text.replace('jnp.', 'j.numpy.')}")
        ROWS[text] = call, "TypeError", ["integer"]


# Arguments that are of the right number and name, and mean nothing.
def unnamed(a, /, b, c, *rest, **options):
    return b


def with_params(j, **params):
    """Check the program of a scan in which parameters are of other types."""
    from_above = {"reverse": True, "xs": V, "init": np.float32(0)}
    program = j.make_jaxpr(lambda: j.lax.scan(lambda c, x: (c, x), **from_above))()
    [eqn] = [e for e in program.jaxpr.eqns if e.primitive.name == "scan"]
    eqns = [eqn.replace(params=eqn.params | params)]
    core = import_module(f"{j.__name__}.extend.core")
    core.check_jaxpr(program.jaxpr.replace(eqns=eqns))


def node(j, flatten):
    made = type("Node", (), {})
    j.tree_util.register_pytree_node(made, flatten, lambda aux, children: made())
    return j.tree_util.tree_leaves(made())


def assign(name):
    return lambda j: setattr(j.numpy.add, name, 3)


def sub_spec(j):
    return type("Mine", (j.P,), {})("x")


def with_static(j, numbers):
    mapped = j.pmap(lambda x, y: x, static_broadcasted_argnums=numbers)
    return mapped(V[:1], y=3)


def window(j):
    pair = [(1,), (1,), "VALID"]
    return j.lax.reduce_window(V, np.float32(0), lambda x, y: [x + y], *pair)


def products(axes):
    return lambda j: j.numpy.tensordot(M.T, M.T, axes=axes)


ROWS |= {
    "nested names": (lambda j: j.P((("x", "y"), "z")), "ValueError", ["('x', 'y')"]),
    "subclass of P": (sub_spec, "TypeError", []),
    "no devices": (lambda j: j.pmap(two, devices=[]), "ValueError", ["devices"]),
    "impl and dtype": (
        lambda j: j.random.wrap_key_data(
            np.zeros(2, "uint32"), impl="threefry2x32", dtype=j.random.key(0).dtype
        ),
        "ValueError",
        ["impl", "dtype"],
    ),
    "static name by position only": (
        lambda j: j.jit(unnamed, static_argnames=("a", "c")),
        "ValueError",
        ["'a'", "position"],
    ),
    "donated name by position only": (
        lambda j: j.jit(unnamed, donate_argnames=("a", "c")),
        "ValueError",
        ["'a'", "position"],
    ),
    "window returns a list": (
        window,
        "ValueError",
        ["reduce_window", "PyTreeDef([*])"],
    ),
    "children that are a number": (
        lambda j: node(j, lambda n: (3, None)),
        "ValueError",
        ["children", "(3, None)"],
    ),
    "no pair of children and aux": (
        lambda j: node(j, lambda n: 3),
        "ValueError",
        ["children", "3"],
    ),
    "three of children and aux": (
        lambda j: node(j, lambda n: ((1,), 2, 3)),
        "ValueError",
        ["children", "((1,), 2, 3)"],
    ),
    "static by keyword": (
        lambda j: with_static(j, 1),
        "ValueError",
        ["static_broadcasted_argnums", "position"],
    ),
    "x.flat": (lambda j: j.numpy.ones(3).flat, "NotImplementedError", ["flat"]),
}
for name in ("nin", "nout", "nargs", "identity"):
    ROWS[f"jnp.add.{name} = 3"] = assign(name), "AttributeError", [name]
for axes in (([0], [0, 1]), (0, [0]), ([0], 0), ([0], 1, 2), ([0],), "a", 1.5):
    ROWS[f"tensordot of axes {axes!r}"] = products(axes), "TypeError", ["axes"]
for param, value in (
    ("reverse", 4),
    ("reverse", None),
    ("num_consts", 0.0),
    ("num_carry", True),
    ("unroll", 1.0),
    ("unroll", -1),
):
    ROWS[f"a scan with {param}={value}"] = (
        partial(with_params, **{param: value}),
        "JaxprTypeError",
        [param, str(value)],
    )
for name, call in {
    "sort": lambda j, value: j.lax.sort(V, is_stable=value),
    "numpy.sort": lambda j, value: j.numpy.sort(V, stable=value),
    "numpy.argsort": lambda j, value: j.numpy.argsort(V, stable=value),
    "approx_max_k": lambda j, value: j.lax.approx_max_k(V, 2, aggregate_to_topk=value),
}.items():
    for value in ("yes", 2, 1.5):
        run = partial(call, value=value)
        ROWS[f"{name} of a truth {value!r}"] = run, "TypeError", [repr(value)]
