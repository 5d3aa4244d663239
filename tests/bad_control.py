"""Bad input of jit, control flow and callbacks: rows for `tests.bad_inputs`."""

import numpy as np

F32, I32 = np.float32, np.int32
ZERO = F32(0)
V = np.ones(3, F32)


def scan(j, body, init=ZERO, xs=V, **options):
    return j.lax.scan(body, init, xs, **options)


def loop(j, cond, body, init=ZERO):
    return j.lax.while_loop(cond, body, init)


def donated(j):
    x = j.numpy.ones(3)
    j.jit(lambda a: a + 1, donate_argnums=0)(x)
    return x + 1


def escaped(j):
    kept = []
    j.jit(lambda x: [kept.append(x), x][1])(1.0)
    return kept[0] + 1


def escaped_from_scan(j):
    kept = []
    scan(j, lambda c, x: (kept.append(c) or c, x))
    return kept[0] + 1


def python_branch(j):
    return j.jit(lambda x: 1.0 if x > 0 else 2.0)(1.0)


def python_loop(j):
    def f(n):
        total = 0.0
        for i in range(n):
            total += i
        return total

    return j.jit(f)(3)


def reverse_while(j):
    return j.grad(lambda x: loop(j, lambda y: y < 3.0, lambda y: y * x, x))(F32(2))


def reverse_fori(j):
    def f(x, n):
        return j.lax.fori_loop(0, n, lambda i, y: y * x, x)

    return j.jit(j.grad(f))(F32(2), 3)


def callback(j, f, shape, *args, **options):
    return j.pure_callback(f, shape, *args, **options)


def struct(j, shape=(3,), dtype="float32"):
    return j.ShapeDtypeStruct(shape, dtype)


def failing(x):
    raise KeyError("no such thing")


ROWS = {
    # jit
    "jit callable": (lambda j: j.jit(3), "TypeError", ["3"]),
    "jit text": (lambda j: j.jit(lambda x: x)("a"), "TypeError", ["str", "x"]),
    "jit result": (lambda j: j.jit(lambda x: "a")(1.0), "TypeError", ["str"]),
    "jit if": (python_branch, "TracerBoolConversionError", ["x"]),
    "jit range": (python_loop, "TracerIntegerConversionError", ["n"]),
    "jit numpy": (
        lambda j: j.jit(lambda x: np.sin(x))(1.0),
        "TracerArrayConversionError",
        ["x"],
    ),
    "jit float": (
        lambda j: j.jit(lambda x: float(x))(1.0),
        "ConcretizationTypeError",
        ["x"],
    ),
    "jit leak": (escaped, "UnexpectedTracerError", []),
    "jit static unhashable": (
        lambda j: j.jit(lambda x, n: x, static_argnums=1)(1.0, [1]),
        "ValueError",
        ["hash", "list"],
    ),
    "jit static array": (
        lambda j: j.jit(lambda x, n: x, static_argnums=1)(1.0, j.numpy.ones(2)),
        "ValueError",
        ["hash"],
    ),
    "jit static name": (
        lambda j: j.jit(lambda x: x, static_argnames="n"),
        "ValueError",
        ["n"],
    ),
    "jit static number": (
        lambda j: j.jit(lambda x: x, static_argnums=3),
        "ValueError",
        ["3"],
    ),
    "jit static type": (
        lambda j: j.jit(lambda x: x, static_argnums="x"),
        "TypeError",
        ["static_argnums"],
    ),
    "jit names type": (
        lambda j: j.jit(lambda x: x, static_argnames=1),
        "TypeError",
        ["static_argnames"],
    ),
    "jit donated and static": (
        lambda j: j.jit(lambda x: x, static_argnums=0, donate_argnums=0),
        "ValueError",
        ["donate"],
    ),
    "jit donated": (donated, "RuntimeError", ["deleted"]),
    "jit too few": (lambda j: j.jit(lambda x, y: x)(1.0), "TypeError", ["y"]),
    "jit too many": (lambda j: j.jit(lambda x: x)(1.0, 2.0), "TypeError", ["1", "2"]),
    "compiled shape": (
        lambda j: j.jit(lambda x: x).lower(V).compile()(np.ones(4, F32)),
        "TypeError",
        ["float32[3]", "float32[4]"],
    ),
    "compiled tree": (
        lambda j: j.jit(lambda x: x).lower(V).compile()((V, V)),
        "TypeError",
        [],
    ),
    "jit gradient of a vector": (
        lambda j: j.grad(j.jit(lambda x: x))(V),
        "TypeError",
        ["(3,)"],
    ),
    # cond and switch
    "cond types": (
        lambda j: j.lax.cond(True, lambda x: x, lambda x: x.astype("int32"), V),
        "TypeError",
        ["float32[3]", "int32[3]"],
    ),
    "cond shapes": (
        lambda j: j.lax.cond(True, lambda x: x, lambda x: x[:2], V),
        "TypeError",
        ["float32[3]", "float32[2]"],
    ),
    "cond trees": (
        lambda j: j.lax.cond(True, lambda x: (x, x), lambda x: [x, x], V),
        "TypeError",
        ["tuple", "list"],
    ),
    "cond leaf": (
        lambda j: j.lax.cond(
            True, lambda x: {"a": x, "b": x}, lambda x: {"a": x, "b": x[0]}, V
        ),
        "TypeError",
        ["['b']", "float32[3]", "float32[]"],
    ),
    "cond vector": (
        lambda j: j.lax.cond(V > 0, lambda x: x, lambda x: x, V),
        "TypeError",
        ["scalar", "(3,)"],
    ),
    "cond text": (
        lambda j: j.lax.cond("a", lambda x: x, lambda x: x, V),
        "TypeError",
        ["'a'"],
    ),
    "cond tuple": (
        lambda j: j.lax.cond((True,), lambda x: x, lambda x: x, V),
        "TypeError",
        ["(True,)"],
    ),
    "cond none": (
        lambda j: j.lax.cond(None, lambda x: x, lambda x: x, V),
        "TypeError",
        [],
    ),
    "cond callable": (lambda j: j.lax.cond(True, 1, 2, V), "TypeError", []),
    "cond operands": (
        lambda j: j.lax.cond(True, lambda x, y: x, lambda x, y: y, V),
        "TypeError",
        [],
    ),
    "cond operand text": (
        lambda j: j.lax.cond(True, lambda x: 1.0, lambda x: 1.0, "a"),
        "TypeError",
        ["str"],
    ),
    "switch float": (
        lambda j: j.lax.switch(1.5, [j.numpy.sin, j.numpy.cos], V),
        "TypeError",
        ["float"],
    ),
    "switch empty": (lambda j: j.lax.switch(0, [], V), "ValueError", ["branch"]),
    "switch vector": (
        lambda j: j.lax.switch(np.arange(3), [j.numpy.sin, j.numpy.cos], V),
        "TypeError",
        ["int32[3]"],
    ),
    "switch callable": (lambda j: j.lax.switch(0, [1, 2], V), "TypeError", []),
    "switch types": (
        lambda j: j.lax.switch(0, [lambda x: x, lambda x: x, lambda x: x[0]], V),
        "TypeError",
        ["float32[3]", "float32[]"],
    ),
    # while
    "while type": (
        lambda j: loop(j, lambda y: y < 3, lambda y: y.astype("int32")),
        "TypeError",
        ["float32[]", "int32[]"],
    ),
    "while shape": (
        lambda j: loop(j, lambda y: True, lambda y: j.numpy.stack([y, y])),
        "TypeError",
        ["float32[]", "float32[2]"],
    ),
    "while tree": (
        lambda j: loop(j, lambda s: True, lambda s: s[0], (F32(0), F32(1))),
        "TypeError",
        ["tuple"],
    ),
    "while leaf": (
        lambda j: loop(
            j, lambda s: True, lambda s: {"a": s["a"], "b": 1}, {"a": V, "b": V}
        ),
        "TypeError",
        ["['b']"],
    ),
    "while predicate": (
        lambda j: loop(j, lambda y: y, lambda y: y),
        "TypeError",
        ["float32"],
    ),
    "while vector predicate": (
        lambda j: loop(j, lambda y: y > 0, lambda y: y, V),
        "TypeError",
        ["bool[3]"],
    ),
    "while tuple predicate": (
        lambda j: loop(j, lambda y: (y > 0,), lambda y: y),
        "TypeError",
        ["(*,)"],
    ),
    "while callable": (lambda j: loop(j, 1, lambda y: y), "TypeError", []),
    "while reverse": (reverse_while, "ValueError", ["while_loop"]),
    "while text": (
        lambda j: loop(j, lambda y: True, lambda y: y, "a"),
        "TypeError",
        ["str"],
    ),
    # fori
    "fori reverse": (reverse_fori, "ValueError", ["fori_loop"]),
    "fori float": (
        lambda j: j.lax.fori_loop(0, 2.5, lambda i, y: y, V),
        "TypeError",
        ["float"],
    ),
    "fori dtypes": (
        lambda j: j.lax.fori_loop(np.int8(0), np.int32(3), lambda i, y: y, V),
        "TypeError",
        ["int8", "int32"],
    ),
    "fori type": (
        lambda j: j.lax.fori_loop(0, 3, lambda i, y: y[:2], V),
        "TypeError",
        ["float32[3]", "float32[2]"],
    ),
    "fori callable": (lambda j: j.lax.fori_loop(0, 3, 1, V), "TypeError", []),
    "fori vector": (
        lambda j: j.lax.fori_loop(0, np.arange(3), lambda i, y: y, V),
        "TypeError",
        [],
    ),
    "fori unroll": (
        lambda j: j.jit(lambda n: j.lax.fori_loop(0, n, lambda i, y: y, V, unroll=2))(
            3
        ),
        "ValueError",
        ["unroll"],
    ),
    # scan
    "scan lengths": (
        lambda j: scan(j, lambda c, x: (c, x[0]), xs=(V, np.ones(4, F32))),
        "ValueError",
        ["3", "4"],
    ),
    "scan length": (
        lambda j: scan(j, lambda c, x: (c, x), length=5),
        "ValueError",
        ["5", "3"],
    ),
    "scan no length": (
        lambda j: scan(j, lambda c, x: (c, x), xs=None),
        "ValueError",
        ["length"],
    ),
    "scan scalar": (
        lambda j: scan(j, lambda c, x: (c, x), xs=F32(1)),
        "IndexError",
        [],
    ),
    "scan traced length": (
        lambda j: j.jit(lambda n: scan(j, lambda c, x: (c, x), xs=None, length=n))(3),
        "ConcretizationTypeError",
        ["n"],
    ),
    "scan result": (lambda j: scan(j, lambda c, x: c + x), "TypeError", ["pair"]),
    "scan three results": (
        lambda j: scan(j, lambda c, x: (c, x, x)),
        "TypeError",
        ["pair"],
    ),
    "scan type": (
        lambda j: scan(j, lambda c, x: (c.astype("int32"), x)),
        "TypeError",
        ["float32[]", "int32[]"],
    ),
    "scan shape": (
        lambda j: scan(j, lambda c, x: (j.numpy.stack([c, x]), x)),
        "TypeError",
        ["float32[]", "float32[2]"],
    ),
    "scan tree": (lambda j: scan(j, lambda c, x: ((c, c), x)), "TypeError", ["tuple"]),
    "scan leaf": (
        lambda j: scan(
            j, lambda c, x: ({"n": c["n"], "y": x * V}, x), {"n": I32(0), "y": F32(0)}
        ),
        "TypeError",
        ["c['y']", "float32[]", "float32[3]"],
    ),
    "scan several leaves": (
        lambda j: scan(j, lambda c, x: ((c[1], c[0]), x), (F32(0), I32(1))),
        "TypeError",
        ["c[0]", "c[1]", "float32", "int32"],
    ),
    "scan callable": (lambda j: scan(j, 3), "TypeError", ["3"]),
    "scan text": (lambda j: scan(j, lambda c, x: (c, x), "a"), "TypeError", ["str"]),
    "scan unroll": (
        lambda j: scan(j, lambda c, x: (c, x), unroll=-1),
        "ValueError",
        ["unroll"],
    ),
    "scan leak": (escaped_from_scan, "UnexpectedTracerError", []),
    "scan if": (
        lambda j: scan(j, lambda c, x: (c if x > 0 else -c, x)),
        "TracerBoolConversionError",
        [],
    ),
    # map and associative_scan
    "map scalar": (lambda j: j.lax.map(lambda x: x, F32(1)), "IndexError", []),
    "map lengths": (
        lambda j: j.lax.map(lambda t: t[0], (V, np.ones(4, F32))),
        "ValueError",
        ["3", "4"],
    ),
    "associative shapes": (
        lambda j: j.lax.associative_scan(
            lambda a, b: (a[0], b[1]), (V, np.ones(4, F32))
        ),
        "ValueError",
        ["4", "3"],
    ),
    "associative callable": (
        lambda j: j.lax.associative_scan(3, V),
        "TypeError",
        ["3"],
    ),
    "associative axis": (
        lambda j: j.lax.associative_scan(j.numpy.add, V, axis=2),
        "ValueError",
        ["2"],
    ),
    # callbacks
    "callback shape": (
        lambda j: j.jit(lambda x: callback(j, lambda x: x[:2], struct(j), x))(V),
        "RuntimeError",
        ["float32[2]", "float32[3]"],
    ),
    "callback raises": (
        lambda j: j.jit(lambda x: callback(j, failing, struct(j), x))(V),
        "RuntimeError",
        ["no such thing"],
    ),
    "callback gradient": (
        lambda j: j.grad(lambda x: callback(j, np.sin, struct(j, ()), x))(F32(1)),
        "ValueError",
        ["Pure callbacks"],
    ),
    "callback vmap": (
        lambda j: j.vmap(lambda x: callback(j, np.sin, struct(j, ()), x))(V),
        "NotImplementedError",
        ["vmap_method"],
    ),
    "callback vmap method": (
        lambda j: callback(j, np.sin, struct(j), V, vmap_method="loudly"),
        "ValueError",
        ["loudly"],
    ),
    "callback text": (
        lambda j: j.jit(lambda: callback(j, lambda x: x, struct(j), "a"))(),
        "TypeError",
        ["str"],
    ),
    "io_callback gradient": (
        lambda j: j.grad(
            lambda x: j.experimental.io_callback(np.sin, struct(j, ()), x)
        )(F32(1)),
        "ValueError",
        ["IO callbacks"],
    ),
    "debug.print field": (
        lambda j: j.debug.print("{x} {y}", x=1.0),
        "KeyError",
        ["y"],
    ),
    "debug.print callable": (lambda j: j.debug.callback(3, 1.0), "TypeError", []),
    "debug.print too many": (
        lambda j: j.debug.print("nothing", 1.0),
        "ValueError",
        [],
    ),
}
