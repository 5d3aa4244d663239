"""What is done to arrays of a byte and less, for tests with and without JAX.

Each case is a function of a library and an array of six numbers.
"""

import numpy as np

INTEGERS = ["int2", "uint2", "int4", "uint4"]
FLOATS = """
    float4_e2m1fn float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn
    float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu
""".split()
DTYPES = [*INTEGERS, *FLOATS]

UNARY = """
    neg abs sign floor ceil round exp exp2 expm1 log log1p sin cos tan tanh sinh cosh
    asin acos atan asinh acosh atanh sqrt rsqrt cbrt logistic square erf erfc erf_inv
    lgamma digamma is_finite bitwise_not population_count clz stop_gradient
    optimization_barrier
""".split()
BINARY = """
    add sub mul div rem pow max min eq ne lt le gt ge atan2 nextafter bitwise_and
    bitwise_or bitwise_xor shift_left shift_right_logical shift_right_arithmetic
""".split()
FOLDS = """
    reduce_max reduce_min reduce_and reduce_or reduce_xor reduce_sum reduce_prod
""".split()
RUNNING = "cumsum cumprod cummax cummin cumlogsumexp".split()

CASES = {
    **{name: lambda m, x, f=name: getattr(m.lax, f)(x) for name in UNARY},
    **{name: lambda m, x, f=name: getattr(m.lax, f)(x, x[::-1]) for name in BINARY},
    **{name: lambda m, x, f=name: getattr(m.lax, f)(x, [0]) for name in FOLDS},
    **{f"{name} of none": lambda m, x, f=name: getattr(m.lax, f)(x[:0], [0])
       for name in FOLDS},
    **{name: lambda m, x, f=name: getattr(m.lax, f)(x) for name in RUNNING},
    **{f"to {new}": lambda m, x, new=new: m.lax.convert_element_type(x, new)
       for new in "bool int8 uint8 int32 uint32 float16 float32 complex64".split()},
    **{f"from {old}": lambda m, x, old=old: m.numpy.array(WIDE, old).astype(x.dtype)
       for old in "bool int8 uint8 int32 uint32 float16 float32".split()},
    **{f"as {new}": lambda m, x, new=new: m.lax.bitcast_convert_type(x, new)
       for new in "int8 uint8 int4 uint4 float8_e5m2 float8_e4m3fn int16".split()},
    "clamp": lambda m, x: m.lax.clamp(x[5], x, x[1]),
    "integer_pow": lambda m, x: m.lax.integer_pow(x, 3),
    "reduce_precision": lambda m, x: m.lax.reduce_precision(x, 3, 1),
    "select": lambda m, x: m.lax.select(x > x[2], x, x[::-1]),
    "select_n": lambda m, x: m.lax.select_n(WHICH, x, x[::-1], x),
    "reshape": lambda m, x: m.lax.reshape(x, (2, 3)),
    "transpose": lambda m, x: m.lax.transpose(x.reshape(2, 3), (1, 0)),
    "broadcast": lambda m, x: m.lax.broadcast(x, (2,)),
    "broadcast_in_dim": lambda m, x: m.lax.broadcast_in_dim(x, (6, 2), (0,)),
    "squeeze": lambda m, x: m.lax.squeeze(x[None], (0,)),
    "concatenate": lambda m, x: m.lax.concatenate([x, x[:2]], 0),
    "pad": lambda m, x: m.lax.pad(x, x[1], [(1, 2, 1)]),
    "rev": lambda m, x: m.lax.rev(x, (0,)),
    "slice": lambda m, x: m.lax.slice(x, (1,), (6,), (2,)),
    "dynamic_slice": lambda m, x: m.lax.dynamic_slice(x, (2,), (3,)),
    "dynamic_update_slice": lambda m, x: m.lax.dynamic_update_slice(x, x[:2], (3,)),
    "row": lambda m, x: x[3],
    "rows": lambda m, x: x[PLACES],
    "rows or zero": lambda m, x: x.at[PLACES].get(mode="fill", fill_value=0),
    "rows or nothing": lambda m, x: x.at[PLACES + 4].get(mode="fill"),
    "set": lambda m, x: x.at[PLACES].set(x[:3]),
    "add at": lambda m, x: x.at[PLACES].add(x[:3]),
    "multiply at": lambda m, x: x.at[PLACES].mul(x[:3]),
    "max at": lambda m, x: x.at[PLACES].max(x[:3]),
    "min at": lambda m, x: x.at[PLACES].min(x[:3]),
    "sort": lambda m, x: m.lax.sort(x),
    "sort pairs": lambda m, x: m.lax.sort_key_val(x, m.numpy.arange(6)),
    "top_k": lambda m, x: m.lax.top_k(x, 2),
    "argmax": lambda m, x: m.lax.argmax(x, 0, "int32"),
    "argmin": lambda m, x: m.lax.argmin(x, 0, "int32"),
    "iota": lambda m, x: m.lax.iota(x.dtype, 6),
    "full": lambda m, x: m.lax.full((2,), 1, x.dtype),
    "dot": lambda m, x: m.lax.dot(x, x),
    "matmul": lambda m, x: m.lax.dot(x.reshape(2, 3), x.reshape(3, 2)),
    "matmul wider": lambda m, x: m.lax.dot(
        x.reshape(2, 3), x.reshape(3, 2), preferred_element_type=wider(x)
    ),
    "outer": lambda m, x: m.numpy.outer(x, x),
    "window": lambda m, x: m.lax.reduce_window(
        x, np.zeros((), x.dtype), m.lax.add, (2,), (1,), "VALID"
    ),
    "scan": lambda m, x: m.lax.scan(lambda c, y: (c + y, c * y), x[0], x),
    "while": lambda m, x: m.lax.fori_loop(0, 3, lambda i, y: y + x[i], x),
    "cond": lambda m, x: m.lax.cond(x[1] > x[2], lambda y: y + y, lambda y: y, x),
    "map": lambda m, x: m.lax.map(lambda y: y * y, x),
    "vmap": lambda m, x: m.vmap(lambda y: y + x)(x),
    "checkpoint": lambda m, x: m.checkpoint(lambda y: y * y + y)(x),
    "zeros_like": lambda m, x: m.numpy.zeros_like(x),
    "plus one": lambda m, x: x + 1,
    "times half": lambda m, x: x * 0.5,
    "plus a byte": lambda m, x: x + m.numpy.int8(1),
    "plus 32 bits": lambda m, x: x + m.numpy.int32(1),
    "plus a float": lambda m, x: x + m.numpy.float32(1),
    "plus another": lambda m, x: x + m.numpy.array(
        1, "int4" if x.dtype.name == "uint4" else "uint4"
    ),
    "mean": lambda m, x: m.numpy.mean(x, dtype="float32"),
    "where": lambda m, x: m.numpy.where(x > 0, x, 0),
    "clip": lambda m, x: m.numpy.clip(x, 0, 1),
    "isnan": lambda m, x: m.numpy.isnan(x),
    "take": lambda m, x: m.numpy.take(x, PLACES),
    "searchsorted": lambda m, x: m.numpy.searchsorted(m.numpy.sort(x), x[1]),
    "numbers": lambda m, x: m.numpy.array(x.tolist()),
}  # fmt: skip
# With derivatives, which integers have not.
SLOPES = {
    "slope": lambda m, x: m.grad(lambda y: (y * y).astype("float32").sum())(x),
    "slope of a cast": lambda m, x: m.grad(
        lambda y: (y.astype(x.dtype).astype("float32") * x.astype("float32")).sum()
    )(x.astype("float32")),
    "slope of a product": lambda m, x: m.grad(
        lambda y: m.lax.dot(y, x, preferred_element_type=np.float32)
    )(x),
}
CASES |= SLOPES

WIDE = np.array([0, 1, 3, 7, 1, 100])
WHICH = np.int32([0, 1, 2, 2, 1, 0])
PLACES = np.array([4, 0, 4])


def wider(x):
    """The type in which products of these numbers are added up."""
    return "int32" if x.dtype.name in INTEGERS else "float32"


def numbers(dtype):
    """Six numbers of a dtype, negative ones and the greatest among them."""
    if dtype.startswith("u"):
        whole = [0, 3, 1, 2, 1, 0] if dtype == "uint2" else [0, 15, 3, 9, 1, 7]
    elif dtype.startswith("i"):
        whole = [0, 1, -1, -2, 1, -1] if dtype == "int2" else [0, 7, -1, -8, 3, -2]
    else:
        whole = [1, 3, -1.5, 0.5, 6, 0]
        if dtype == "float8_e8m0fnu":
            whole = [1, 4, 0.5, 2, 0.25, 16]
    return np.array(whole)
