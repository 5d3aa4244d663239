"""Programs as a newcomer writes them, each after a page of JAX's documentation.

Twenty of them are on own rules, forgetting, random numbers and errors. The page is
named in each docstring; the code and the words are this book's own. Each takes the
package as its argument, `minijax` or `jax`, and returns what it would print, as a
dictionary of arrays and numbers.
"""

import dataclasses
from importlib import import_module

import numpy as np

PROGRAMS = {}


def program(f):
    PROGRAMS[f.__name__] = f
    return f


# Custom derivative rules.


@program
def softplus_that_does_not_overflow(jax):
    """Page "Custom derivative rules": a stable slope where the formula overflows."""
    jnp = jax.numpy

    def plain(x):
        return jnp.log(1.0 + jnp.exp(x))

    stable = jax.custom_jvp(plain)
    stable.defjvps(lambda t, out, x: t * (1.0 - 1.0 / (1.0 + jnp.exp(x))))
    xs = jnp.array([-3.0, 0.0, 3.0, 120.0])
    return {
        "plain": jax.vmap(jax.grad(plain))(xs),
        "stable": jax.vmap(jax.grad(stable))(xs),
        "second": jax.vmap(jax.grad(jax.grad(stable)))(xs[:3]),
    }


@program
def square_root_at_zero(jax):
    """Page "Custom derivative rules": enforce a convention at the edge of a domain."""
    jnp = jax.numpy

    @jax.custom_jvp
    def length(v):
        return jnp.sqrt((v * v).sum())

    @length.defjvp
    def length_jvp(primals, tangents):
        (v,), (v_dot,) = primals, tangents
        out = length(v)
        safe = jnp.where(out > 0, out, 1.0)
        return out, jnp.where(out > 0, (v * v_dot).sum() / safe, 0.0)

    at = jnp.array([[3.0, 4.0], [0.0, 0.0]])
    return {"lengths": jax.vmap(length)(at), "slopes": jax.vmap(jax.grad(length))(at)}


@program
def clipped_gradient(jax):
    """Page "Custom derivative rules": clip what flows back through a value."""
    jnp = jax.numpy

    def limited(low, high, x):
        return x

    limited = jax.custom_vjp(limited, nondiff_argnums=(0, 1))
    limited.defvjp(
        lambda low, high, x: (x, None),
        lambda low, high, _, ct: (jnp.clip(ct, low, high),),
    )

    def loss(x):
        return (10.0 * limited(-0.5, 2.0, x) ** 3).sum()

    return {"slope": jax.jit(jax.grad(loss))(jnp.array([-1.0, 0.1, 0.3]))}


@program
def implicit_fixed_point(jax):
    """Page "Custom derivative rules": differentiate a fixed point implicitly."""
    jnp, lax = jax.numpy, jax.lax

    def iterate(f, start):
        def going(pair):
            return jnp.abs(pair[1] - pair[0]) > 1e-6

        return lax.while_loop(going, lambda p: (p[1], f(p[1])), (start, f(start)))[1]

    def settle(f, a, start):
        return iterate(lambda x: f(a, x), start)

    def forwards(f, a, start):
        x = settle(f, a, start)
        return x, (a, x)

    def backwards(f, kept, ct):
        a, x = kept
        _, by_a = jax.vjp(lambda a: f(a, x), a)
        _, by_x = jax.vjp(lambda x: f(a, x), x)
        u = iterate(lambda u: ct + by_x(u)[0], ct)
        return by_a(u)[0], jnp.zeros_like(x)

    settle = jax.custom_vjp(settle, nondiff_argnums=(0,))
    settle.defvjp(forwards, backwards)

    def root(a):
        return settle(lambda a, x: 0.5 * (x + a / x), a, jnp.float32(1.5))

    return {"root": root(2.0), "slope": jax.grad(root)(2.0), "exact": 0.5 / 2.0**0.5}


@program
def a_rule_for_a_tree(jax):
    """Page "Custom derivative rules": arguments and results that are trees."""
    jnp = jax.numpy

    @jax.custom_vjp
    def rotate(point):
        return {"x": point["y"], "y": -point["x"]}

    rotate.defvjp(
        lambda point: (rotate(point), ()),
        lambda _, ct: ({"x": -ct["y"], "y": 3.0 * ct["x"]},),
    )

    def height(point):
        turned = rotate(point)
        return jnp.sin(turned["x"]) * turned["y"]

    return jax.grad(height)({"x": 0.4, "y": 1.2})


@program
def a_slope_that_is_no_longer_than_one(jax):
    """Page "jax.custom_gradient": value and pullback from one function."""
    jnp = jax.numpy

    @jax.custom_gradient
    def gentle(x):
        def back(ct):
            slope = ct * 2.0 * x
            return slope / jnp.maximum(1.0, jnp.abs(slope))

        return x * x, back

    xs = jnp.array([-2.0, 0.25, 7.0])
    return {"values": gentle(xs), "slopes": jax.vmap(jax.grad(gentle))(xs)}


@program
def a_batch_with_a_rule_of_its_own(jax):
    """Page "jax.custom_batching.custom_vmap": all examples in one product."""
    jnp = jax.numpy

    @jax.custom_batching.custom_vmap
    def energy(w, x):
        return x @ w @ x

    @energy.def_vmap
    def energies(size, batched, w, xs):
        assert batched == [False, True]
        return jnp.sum((xs @ w) * xs, axis=-1), True

    w, xs = jnp.arange(9.0).reshape(3, 3) / 9, jnp.arange(6.0).reshape(2, 3)
    return {"one": energy(w, xs[0]), "all": jax.vmap(energy, (None, 0))(w, xs)}


# The autodiff cookbook, and automatic differentiation.


@program
def logistic_regression(jax):
    """Page "The Autodiff Cookbook": gradients of a small classifier, and a check."""
    jnp = jax.numpy
    rows = jnp.array([[0.5, 1.1, -0.6], [0.9, -1.2, 0.3], [0.2, 0.4, 1.5]])
    labels = jnp.array([True, False, True])

    def loss(w, b):
        chance = jax.lax.logistic(rows @ w + b)
        return -jnp.sum(jnp.log(jnp.where(labels, chance, 1.0 - chance)))

    w, b = jnp.array([0.1, -0.3, 0.2]), 0.05
    value, (slope_w, slope_b) = jax.value_and_grad(loss, (0, 1))(w, b)
    step = 1e-2
    tested = (loss(w, b + step) - loss(w, b - step)) / (2 * step)
    return {"loss": value, "w": slope_w, "b": slope_b, "tested": jnp.round(tested, 2)}


@program
def jacobians_and_hessians(jax):
    """Page "The Autodiff Cookbook": Jacobians by rows and by columns, Hessians."""
    jnp = jax.numpy

    def f(x):
        return jnp.stack([x[0] * jnp.sin(x[1]), x[1] ** 2 * x[2], x.sum()])

    def g(x):
        return f(x)[0] * f(x)[1]

    x = jnp.array([0.5, 1.5, -0.7])
    return {
        "rows": jax.jacrev(f)(x),
        "columns": jax.jacfwd(f)(x),
        "hessian": jax.hessian(g)(x),
        "other": jax.jacrev(jax.jacrev(g))(x),
    }


@program
def hessian_vector_products(jax):
    """Page "The Autodiff Cookbook": a Hessian times a vector, two ways round."""
    jnp = jax.numpy

    def f(x):
        return jnp.sum(jnp.tanh(x) ** 2) * x[0]

    def over(x, v):
        return jax.jvp(jax.grad(f), (x,), (v,))[1]

    def under(x, v):
        return jax.grad(lambda x: jnp.vdot(jax.grad(f)(x), v))(x)

    x, v = jnp.arange(1.0, 4.0) / 4, jnp.array([1.0, -2.0, 0.5])
    return {"over": jax.jit(over)(x, v), "under": jax.jit(under)(x, v)}


@program
def gradient_of_each_example(jax):
    """Page "Advanced automatic differentiation": gradients of single examples."""
    jnp = jax.numpy

    def loss(params, x, y):
        return (jnp.tanh(params["w"] @ x + params["b"]) - y) ** 2

    params = {"w": jnp.array([0.3, -0.8]), "b": jnp.float32(0.1)}
    xs, ys = (
        jnp.array([[1.0, 2.0], [0.0, -1.0], [2.0, 0.5]]),
        jnp.array([1.0, 0.0, -1.0]),
    )
    return jax.jit(jax.vmap(jax.grad(loss), in_axes=(None, 0, 0)))(params, xs, ys)


@program
def a_target_that_stands_still(jax):
    """Page "Advanced automatic differentiation": a target without a gradient."""
    jnp, lax = jax.numpy, jax.lax

    def value(theta, state):
        return jnp.dot(theta, state)

    def surprise(theta, before, reward, after, stop):
        target = reward + 0.9 * value(theta, after)
        return (stop(target) - value(theta, before)) ** 2

    theta = jnp.array([0.1, -0.1, 0.0])
    given = jnp.array([1.0, 2.0, -1.0]), 1.0, jnp.array([2.0, 1.0, 0.0])
    slope = jax.grad(surprise)
    return {
        "stopped": slope(theta, *given, lax.stop_gradient),
        "not": slope(theta, *given, lambda x: x),
    }


@program
def straight_through(jax):
    """Page "Advanced automatic differentiation": a step with the slope of a line."""
    jnp, lax = jax.numpy, jax.lax

    def rounded(x):
        return x + lax.stop_gradient(jnp.round(x) - x)

    xs = jnp.array([0.2, 1.7, -2.6])
    f = jax.vmap(jax.value_and_grad(lambda x: rounded(x) ** 2))
    return dict(zip(("values", "slopes"), f(xs)))


# Pseudorandom numbers.


@program
def keys_are_split(jax):
    """Page "Pseudorandom numbers": split a key, and use each part once."""
    random = jax.random
    key, drawn = random.key(42), []
    for _ in range(3):
        key, sub = random.split(key)
        drawn.append(random.normal(sub))
    again = random.normal(sub)
    return {"drawn": drawn, "again": again, "key": random.key_data(key)}


@program
def one_by_one_or_at_once(jax):
    """Page "Pseudorandom numbers": single draws and an array of them differ."""
    jnp, random = jax.numpy, jax.random
    keys = random.split(random.key(7), 3)
    single = jnp.stack([random.uniform(key) for key in keys])
    return {
        "single": single,
        "mapped": jax.vmap(random.uniform)(keys),
        "array": random.uniform(random.key(7), (3,)),
    }


@program
def random_walks(jax):
    """Page "Pseudorandom numbers": keys in a compiled loop, one walk for each."""
    jnp, random, lax = jax.numpy, jax.random, jax.lax

    @jax.jit
    def walk(key):
        def step(place, key):
            place = place + jnp.where(random.uniform(key) < 0.5, -1, 1)
            return place, place

        return lax.scan(step, 0, random.split(key, 6))[1]

    return {"walks": jax.vmap(walk)(random.split(random.key(0), 4))}


@program
def dropout_in_training(jax):
    """Page "Pseudorandom numbers": a fresh key for each step, from its number."""
    jnp, random = jax.numpy, jax.random
    x, key = jnp.linspace(-1.0, 1.0, 8), random.key(3)

    def loss(w, key):
        kept = random.uniform(key, w.shape) < 0.75
        return jnp.mean((jnp.where(kept, w / 0.75, 0.0) * x - 1.0) ** 2)

    @jax.jit
    def update(i, w):
        return w - 0.5 * jax.grad(loss)(w, random.fold_in(key, i))

    return {"w": jax.lax.fori_loop(0, 5, update, jnp.zeros(8))}


@program
def epochs_in_a_new_order(jax):
    """Page "jax.random module": shuffled batches, and a subset without doubles."""
    random, rows = jax.random, jax.numpy.arange(8.0)

    def epoch(key):
        first, second = random.split(key)
        picked = random.choice(second, rows, (3,), replace=False)
        return random.permutation(first, rows).reshape(4, 2).sum(1), picked

    return {"epochs": jax.vmap(epoch)(random.split(random.key(1), 2))}


@program
def the_largest_of_noisy_scores(jax):
    """Page "jax.random module": a category, and the same by Gumbel noise."""
    jnp, random = jax.numpy, jax.random
    key, logits = random.key(11), jnp.log(jnp.array([0.1, 0.6, 0.3]))
    noisy = logits + random.gumbel(key, (500, 3))
    drawn = random.categorical(key, logits, shape=(500,))
    return {
        "same": (jnp.argmax(noisy, -1) == drawn).mean(),
        "part": (drawn == 1).mean(),
    }


# Errors.


def raised(f, *args):
    """Return the names of the classes of the error that a call raises."""
    try:
        f(*args)
    except Exception as error:
        return [each.__name__ for each in type(error).__mro__ if "Error" in str(each)]
    return []


def telling(jax, f, cured, *args, wanted):
    """Return whether a program is refused with a class of error, and its cure."""
    names = raised(jax.jit(f), *args)
    return {"refused": wanted in names, "cured": cured(*args)}


@program
def a_branch_on_a_tracer(jax):
    """Page "JAX Errors": TracerBoolConversionError, cured by a choice of values."""

    def size(x):
        return x if x > 0 else -x

    cured = jax.jit(lambda x: jax.numpy.where(x > 0, x, -x))
    return telling(jax, size, cured, -2.5, wanted="TracerBoolConversionError")


@program
def a_shape_that_is_not_known(jax):
    """Page "JAX Errors": a shape of a traced number, cured by a static argument."""

    def ramp(n):
        return jax.numpy.arange(n) * 2.0

    cured = jax.jit(ramp, static_argnums=0)
    return telling(jax, ramp, cured, 4, wanted="ConcretizationTypeError")


@program
def numpy_of_a_tracer(jax):
    """Page "JAX Errors": TracerArrayConversionError, cured by jax.numpy."""

    def grown(x):
        return np.log1p(x)

    cured = jax.jit(lambda x: jax.numpy.log1p(x))
    x = jax.numpy.arange(3.0)
    return telling(jax, grown, cured, x, wanted="TracerArrayConversionError")


@program
def a_mask_of_unknown_size(jax):
    """Page "JAX Errors": NonConcreteBooleanIndexError, cured by a choice."""
    jnp = jax.numpy

    def total(x):
        return x[x > 0].sum()

    cured = jax.jit(lambda x: jnp.where(x > 0, x, 0.0).sum())
    x = jnp.array([3.0, -1.0, 2.0])
    return telling(jax, total, cured, x, wanted="NonConcreteBooleanIndexError")


@program
def a_value_that_got_out(jax):
    """Page "JAX Errors": UnexpectedTracerError, cured by a result."""
    kept = []

    def remember(x):
        kept.append(x * 2.0)
        return x

    jax.jit(remember)(1.0)
    names = raised(lambda: kept[0] + 1.0)
    cured = jax.jit(lambda x: (x, x * 2.0))(1.0)
    return {"refused": "UnexpectedTracerError" in names, "cured": cured}


# Control flow, stateful computations, and forgetting.


@program
def branches_and_loops(jax):
    """Page "Control flow and logical operators with JIT": cond, while, fori, scan."""
    jnp, lax = jax.numpy, jax.lax

    @jax.jit
    def steps(n):
        def once(pair):
            n, count = pair
            odd = n % 2 == 1
            return lax.cond(odd, lambda n: 3 * n + 1, lambda n: n // 2, n), count + 1

        return lax.while_loop(lambda pair: pair[0] != 1, once, (n, 0))[1]

    total = lax.fori_loop(0, 5, lambda i, t: t + i * i, 0)
    largest, running = lax.scan(
        lambda c, x: (jnp.maximum(c, x), jnp.maximum(c, x)),
        -jnp.inf,
        jnp.array([1.0, 3, 2]),
    )
    return {
        "steps": jnp.stack([steps(n) for n in (1, 6, 7)]),
        "total": total,
        "largest": largest,
        "running": running,
    }


@program
def a_loop_differentiated(jax):
    """Page "Control flow and logical operators with JIT": gradients of loops."""
    jnp, lax = jax.numpy, jax.lax

    def power(x):
        return lax.scan(lambda c, _: (c * x, c), 1.0, None, length=4)[0]

    def piecewise(x):
        return lax.switch(
            jnp.int32(x > 0) + jnp.int32(x > 2), [lambda x: -x, jnp.square, jnp.exp], x
        )

    xs = jnp.array([-1.0, 1.0, 3.0])
    return {
        "power": jax.grad(power)(1.5),
        "piecewise": jax.vmap(jax.grad(piecewise))(xs),
        "forward": jax.jvp(
            lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, x), (2.0,), (1.0,)
        ),
    }


@program
def a_counter_without_state(jax):
    """Page "Stateful computations": state goes in and comes out."""

    @jax.jit
    def count(state):
        return {"n": state["n"] + 1, "sum": state["sum"] + state["n"]}, state["n"]

    state, seen = {"n": 0, "sum": 0}, []
    for _ in range(4):
        state, n = count(state)
        seen.append(n)
    return {"state": state, "seen": seen}


@program
def a_line_is_fitted(jax):
    """Page "Stateful computations": parameters, gradients, an update of a tree."""
    jnp, random = jax.numpy, jax.random
    noise, start = random.split(random.key(1))
    x = jnp.linspace(0.0, 1.0, 20)
    y = 3.0 * x - 1.0 + 0.1 * random.normal(noise, x.shape)

    def loss(params):
        return jnp.mean((params["w"] * x + params["b"] - y) ** 2)

    @jax.jit
    def update(params, _):
        value, slope = jax.value_and_grad(loss)(params)
        return jax.tree_util.tree_map(lambda p, s: p - 0.3 * s, params, slope), value

    params = {"w": random.normal(start), "b": jnp.float32(0.0)}
    params, losses = jax.lax.scan(update, params, None, length=50)
    return {"params": params, "first": losses[0], "last": losses[-1]}


@program
def layers_that_forget(jax):
    """Page "Gradient checkpointing": layers in a scan are computed again."""
    jnp = jax.numpy
    weights = jnp.stack([jnp.eye(3) * 0.5 + 0.1 * i for i in range(3)])

    def layer(h, w):
        return jnp.tanh(w @ h), None

    def loss(weights, layer):
        return jnp.sum(jax.lax.scan(layer, jnp.arange(3.0), weights)[0] ** 2)

    policy = jax.checkpoint_policies.dots_with_no_batch_dims_saveable
    ways = {
        "plain": layer,
        "again": jax.checkpoint(layer),
        "saved": jax.checkpoint(layer, policy=policy),
    }
    slope = jax.jit(jax.grad(loss), static_argnums=1)
    return {name: slope(weights, way) for name, way in ways.items()}


@program
def a_chain_in_halves(jax):
    """Page "Gradient checkpointing": recursive checkpointing of a chain."""
    jnp = jax.numpy

    def chain(functions):
        if len(functions) == 1:
            return functions[0]
        middle = len(functions) // 2
        first, second = chain(functions[:middle]), chain(functions[middle:])
        return lambda x: second(jax.checkpoint(first)(x))

    def loss(x):
        return chain([jnp.sin, jnp.cos, jnp.tanh] * 3)(x).sum()

    return {"slope": jax.jit(jax.grad(loss))(jnp.arange(4.0))}


@program
def only_what_has_a_name(jax):
    """Page "Gradient checkpointing": names for what a policy may keep."""
    jnp, policies = jax.numpy, jax.checkpoint_policies
    named = import_module(f"{jax.__name__}.ad_checkpoint").checkpoint_name
    w, x = jnp.eye(3) + 0.2, jnp.arange(3.0)

    def loss(w):
        hidden = named(jnp.tanh(w @ x), "hidden")
        return jnp.sum(jnp.sin(w @ hidden) ** 2)

    policy = policies.save_only_these_names("hidden")
    slopes = [jax.grad(f)(w) for f in (loss, jax.checkpoint(loss, policy=policy))]
    return {"slope": slopes[1], "same": jnp.allclose(*slopes)}


@program
def a_flag_and_a_batch_that_forget(jax):
    """Page "Gradient checkpointing": static arguments, and vmap around."""
    jnp = jax.numpy

    def block(x, training):
        return jnp.sin(x) * x if training else x

    forgetful = jax.checkpoint(block, static_argnums=1)
    xs = jnp.array([0.5, 1.5])
    slopes = jax.vmap(jax.grad(forgetful), (0, None))
    return {"training": slopes(xs, True), "not": slopes(xs, False)}


# The rest of the user guide.


@program
def a_layer_that_is_a_node(jax):
    """Page "Pytrees": a class of one's own goes through scan, grad and tree.map."""
    jnp = jax.numpy

    class Layer:
        def __init__(self, w, name):
            self.w, self.name = w, name

    jax.tree_util.register_pytree_node(
        Layer, lambda x: ((x.w,), x.name), lambda name, parts: Layer(*parts, name)
    )

    def loss(layer, xs):
        def step(carry, x):
            carry = jnp.tanh(layer.w @ carry + x)
            return carry, carry.sum()

        last, sums = jax.lax.scan(step, jnp.zeros(2), xs)
        return (last**2).sum() + sums.mean()

    layer = Layer(jnp.array([[0.5, -0.2], [0.1, 0.3]]), "cell")
    slope = jax.jit(jax.grad(loss))(layer, jnp.ones((5, 2)))
    moved = jax.tree.map(lambda w, g: w - 0.1 * g, layer, slope)
    return {"named": moved.name == "cell", "w": moved.w}


@program
def compiled_ahead(jax):
    """Page "Ahead-of-time lowering and compilation": lower, look, compile, run."""
    jnp = jax.numpy

    @jax.jit
    def f(x, y):
        return {"sum": x + y, "dot": x @ y}

    shapes = jax.ShapeDtypeStruct((3,), jnp.float32), jnp.ones(3)
    compiled = f.lower(*shapes).compile()
    refused = raised(compiled, jnp.ones(4), jnp.ones(3))
    told = jax.tree.leaves(f.lower(*shapes).out_info)
    found = compiled(jnp.arange(3.0), jnp.ones(3))
    kinds = [out.dtype == jnp.float32 for out in told]
    return {**found, "refused": "TypeError" in refused, "kinds": kinds}


@program
def places_outside(jax):
    """Page "The Sharp Bits": what indices out of bounds find, and what they change."""
    jnp = jax.numpy
    x = jnp.arange(1.0, 5.0)
    far = jnp.array([0, 9, -1, -9])
    return {
        "clamped": x[jnp.array([2, 7])],
        "filled": x.at[far].get(mode="fill", fill_value=-1.0),
        "dropped": x.at[far].add(10.0, mode="drop"),
        "slices": x.at[1:9:2].multiply(2.0),
        "grid": x.reshape(2, 2)[jnp.array([[0, 1]]), None, ::-1],
        "mask": jnp.where(x > 2, x, 0.0).sum(),
        "slope": jax.grad(lambda v: v[jnp.array([1, 1, 9])].sum())(x),
        "cut": jax.lax.dynamic_slice(x, (jnp.int32(3),), (2,)),
    }


@program
def sums_of_ragged_rows(jax):
    """Page "jax.ops": rows of several lengths are one array and the row of each."""
    jnp = jax.numpy
    values, rows = jnp.array([1.0, 2.0, 3.0, 4.0, 5.0]), jnp.array([0, 0, 2, 2, 2])
    segment_sum = import_module(f"{jax.__name__}.ops").segment_sum

    def mean(values):
        counts = segment_sum(jnp.ones_like(values), rows, num_segments=3)
        return segment_sum(values, rows, 3) / jnp.maximum(counts, 1.0)

    hot = jax.nn.one_hot(rows, 3)
    return {
        "means": jax.jit(mean)(values),
        "by product": hot.T @ values,
        "slope": jax.grad(lambda v: (mean(v) ** 2).sum())(values),
        "unknown": jax.nn.one_hot(jnp.array([1, 3, -1]), 3),
    }


@program
def roots_of_a_batch(jax):
    """Page "Control flow": each example has a while loop of its own length."""
    jnp = jax.numpy

    def root(a):
        def far(state):
            x, steps = state
            return (jnp.abs(x * x - a) > 1e-5 * a) & (steps < 50)

        def newton(state):
            x, steps = state
            return 0.5 * (x + a / x), steps + 1

        return jax.lax.while_loop(far, newton, (a, 0))

    found, steps = jax.jit(jax.vmap(root))(jnp.array([0.25, 2.0, 9.0, 1e4]))
    slope = jax.jvp(lambda a: root(a)[0], (4.0,), (1.0,))[1]
    return {"roots": found, "steps": steps, "slope": slope}


@program
def numpy_inside(jax):
    """Page "External callbacks": a function of NumPy under jit, vmap and grad."""
    jnp = jax.numpy
    seen = []

    def host(x):
        return np.sinh(np.asarray(x)).astype(np.float32)

    @jax.custom_jvp
    def sinh(x):
        kind = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.pure_callback(host, kind, x, vmap_method="expand_dims")

    sinh.defjvps(lambda t, out, x: t * jnp.sqrt(1 + out**2))

    @jax.jit
    def f(x):
        jax.debug.callback(lambda v: seen.append(float(v)), x.sum())
        return sinh(x)

    x = jnp.array([0.0, 1.0, -2.0])
    values = f(x)
    jax.effects_barrier()
    slopes = jax.vmap(jax.grad(sinh))(x)
    return {"values": values, "slopes": slopes, "seen": seen}


@program
def errors_inside(jax):
    """Page "The checkify transformation": a check in a jitted function, as a value."""
    checkify = import_module(f"{jax.__name__}.experimental.checkify")
    jnp = jax.numpy

    def f(x, i):
        checkify.check(i >= 0, "index {i} has to be positive", i=jnp.asarray(i))
        return jnp.log(x[i])

    checked = jax.jit(checkify.checkify(f, errors=checkify.all_checks))
    x = jnp.array([1.0, -1.0, 0.5])
    errors = [checked(x, i)[0].get() or "" for i in (0, -2, 1, 7)]
    words = "", "has to be positive", "nan generated", "out-of-bounds"
    told = [word in error for word, error in zip(words, errors)]
    return {"told": told, "value": checked(x, 2)[1]}


@program
def state_goes_through(jax):
    """Page "Stateful computations": running means, returned beside the gradient."""
    jnp = jax.numpy

    def loss(w, state, x):
        mean = 0.9 * state["mean"] + 0.1 * x.mean(0)
        return (((x - mean) @ w) ** 2).mean(), {"mean": mean, "n": state["n"] + 1}

    @jax.jit
    def step(carry, x):
        w, state = carry
        (value, state), slope = jax.value_and_grad(loss, has_aux=True)(w, state, x)
        return (w - 0.1 * slope, state), value

    xs = jax.random.normal(jax.random.key(3), (6, 8, 2))
    start = jnp.array([1.0, -1.0]), {"mean": jnp.zeros(2), "n": 0}
    (w, state), losses = jax.lax.scan(step, start, xs)
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(0), i))(jnp.arange(3))
    draws = jax.vmap(jax.random.uniform)(keys)
    return {"w": w, "state": state, "losses": losses, "draws": draws}


@program
def half_of_it_on_each(jax):
    """Page "Distributed arrays": a sharded product, and shard_map with a psum."""
    jnp, sharding = jax.numpy, jax.sharding
    mesh = sharding.Mesh(np.array(jax.devices()[:1]), ("data",))
    rows = sharding.NamedSharding(mesh, sharding.PartitionSpec("data"))
    x = jax.device_put(jnp.arange(8.0).reshape(4, 2), rows)
    spec = sharding.PartitionSpec("data", None)
    mean = jax.shard_map(
        lambda block: jax.lax.psum(block.sum(0), "data") / 4,
        mesh=mesh,
        in_specs=spec,
        out_specs=sharding.PartitionSpec(None),
    )
    product = jax.jit(lambda x: x @ x.T)(x)
    return {"mean": jax.jit(mean)(x), "product": product, "kept": x.sharding == rows}


@program
def a_function_to_take_along(jax):
    """Page "Exporting and serializing staged-out computations": call, and its vjp."""
    jnp, export = jax.numpy, import_module(f"{jax.__name__}.export")

    @jax.jit
    def model(x, *, w):
        return {"y": jnp.tanh(x @ w), "n": x.sum()}

    kinds = [jax.ShapeDtypeStruct(shape, np.float32) for shape in ((2, 3), (3,))]
    packed = export.export(model)(kinds[0], w=kinds[1])
    x, w = jnp.arange(6.0).reshape(2, 3) / 6, jnp.array([1.0, -1.0, 0.5])
    back = packed.vjp()
    return {
        "called": packed.call(x, w=w),
        "slope": jax.grad(lambda w: packed.call(x, w=w)["y"].sum())(w),
        "back": back.call(x, w, 1.0, jnp.ones(2)),  # leaves: n comes before y
        "axes": [aval.ndim for aval in (*back.in_avals, *back.out_avals)],
        "refused": "ValueError" in raised(lambda: packed.call(x[:1], w=w)),
    }


@program
def a_spectrum_of_running_folds(jax):
    """Page "jax.lax.associative_scan": sums, recurrences and products of matrices."""
    jnp, scan = jax.numpy, jax.lax.associative_scan

    def after(first, second):
        (a, b), (c, d) = first, second
        return a * c, c * b + d

    turns = jnp.array([[[0.0, -1.0], [1.0, 0.5]]] * 5)
    return {
        "sums": scan(jnp.add, jnp.arange(7), reverse=True),
        "recurrence": scan(after, (jnp.full(6, 0.5), jnp.arange(6.0)))[1],
        "products": scan(jnp.matmul, turns)[-1],
        "slope": jax.grad(lambda x: scan(jnp.multiply, x).sum())(jnp.arange(1.0, 5.0)),
    }


@program
def a_key_is_used_up(jax):
    """Page "jax.experimental.key_reuse module": which second uses are told."""
    random, told = jax.random, {}
    with jax.debug_key_reuse(True):

        def twice(use, key):
            use(key)
            return "KeyReuseError" in raised(use, key)

        told["draw"] = twice(random.normal, random.key(0))
        told["split"] = twice(random.split, random.key(1))
        told["fold"] = twice(lambda key: random.fold_in(key, 1), random.key(2))
        told["clone"] = twice(lambda k: random.normal(random.clone(k)), random.key(3))
        both = jax.jit(lambda key: random.normal(key) + random.uniform(key))
        told["compiled"] = "KeyReuseError" in raised(both, random.key(4))
    return told


@program
def leaves_have_paths(jax):
    """Page "Pytrees": a function of each leaf and its path; a registered dataclass."""
    tree, util = jax.tree, jax.tree_util

    @dataclasses.dataclass
    class Layer:
        w: object
        name: str = dataclasses.field(default="", metadata={"static": True})

    util.register_dataclass(Layer)
    params = {"first": Layer(2.0, "a"), "rest": [Layer(3.0, "b"), (4.0, None)]}
    lengths = tree.map_with_path(lambda path, x: x + len(path), params)
    paths = [util.keystr(path) for path, _ in tree.leaves_with_path(params)]
    wanted = ["['first'].w", "['rest'][0].w", "['rest'][1][0]"]
    return {"leaves": tree.leaves(lengths), "paths": paths == wanted}


@program
def an_array_from_its_parts(jax):
    """Page "jax.make_array_from_callback": each device asks for its own indices."""
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("rows",))
    spec = jax.sharding.PartitionSpec("rows")
    rows = jax.sharding.NamedSharding(mesh, spec)
    whole = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    made = jax.make_array_from_callback((4, 2), rows, lambda index: whole[index])
    halves = np.split(whole, len(mesh.devices))
    parts = [jax.device_put(x, d) for x, d in zip(halves, mesh.devices)]
    joined = jax.make_array_from_single_device_arrays((4, 2), rows, parts)
    total = jax.shard_map(
        lambda x: jax.lax.psum(x.sum(), "rows"), mesh=mesh, in_specs=spec,
        out_specs=jax.sharding.PartitionSpec(),
    )  # fmt: skip
    return {
        "made": made,
        "joined": joined,
        "total": jax.jit(total)(made),
        "parts": [shard.data for shard in made.addressable_shards],
        "refused": "ValueError" in raised(jax.device_put, np.ones(3), rows),
    }


@program
def arrays_are_lent(jax):
    """Page "jax.dlpack module": memory that NumPy sees, and NumPy's as an array."""
    jnp, x = jax.numpy, jax.numpy.arange(6.0).reshape(2, 3)
    lent = np.from_dlpack(x)
    return {
        "lent": lent,
        "writeable": lent.flags.writeable,
        "taken": jnp.from_dlpack(np.arange(4, dtype=np.int8)),
        "copied": jnp.from_dlpack(x, copy=True),
        "capsule": bool(raised(jnp.from_dlpack, x.__dlpack__())),
    }


@program
def experts_of_their_rows(jax):
    """Page "jax.lax.ragged_dot": rows that are sorted by expert, and their gradient."""
    jnp, key = jax.numpy, jax.random.key(0)
    x, w = jax.random.normal(key, (6, 3)), jax.random.normal(key, (3, 3, 2))
    chosen = jnp.array([2, 0, 2, 1, 0, 2])
    order, sizes = jnp.argsort(chosen), jnp.bincount(chosen, length=3)

    def routed(w):
        return jax.lax.ragged_dot(x[order], w, sizes)[jnp.argsort(order)]

    return {
        "routed": routed(w),
        "one by one": jnp.einsum("ij,ijk->ik", x, w[chosen]),
        "slope": jax.grad(lambda w: (routed(w) ** 2).sum())(w),
    }


# Longer programs: models, samplers, searches and solvers.


@program
def digits_from_a_code(jax):
    """Page "jax.random module": a variational autoencoder with a key for each step."""
    jnp, random, lax = jax.numpy, jax.random, jax.lax
    stax = import_module(f"{jax.__name__}.example_libraries.stax")
    halves = stax.parallel(stax.Dense(2), stax.serial(stax.Dense(2), stax.Softplus))
    layers = stax.Dense(6), stax.Relu, stax.FanOut(2), halves
    init, encode = stax.serial(*layers)
    other_init, decode = stax.serial(stax.Dense(6), stax.Tanh, stax.Dense(9))
    key = random.key(0)
    images = random.uniform(random.fold_in(key, 1), (8, 9)) > 0.6

    def bound(params, key):
        mean, variance = encode(params[0], images.astype(jnp.float32))
        code = mean + jnp.sqrt(variance) * random.normal(key, mean.shape)
        logits = decode(params[1], code)
        likelihood = -jnp.logaddexp(0.0, jnp.where(images, -1.0, 1.0) * logits).sum()
        distance = 0.5 * (mean**2 + variance - 1.0 - jnp.log(variance)).sum()
        return (likelihood - distance) / len(images)

    def step(i, params):
        slope = jax.grad(bound)(params, random.fold_in(key, i))
        return jax.tree.map(lambda p, g: p + 0.1 * g, params, slope)

    first, second = random.split(random.fold_in(key, 2))
    start = init(first, (8, 9))[1], other_init(second, (8, 2))[1]
    last = lax.fori_loop(0, 20, jax.jit(step), start)
    values = [bound(params, key) for params in (start, last)]
    return {"better": values[1] > values[0], "bound": values, "last": last[1]}


@program
def a_process_of_points(jax):
    """Page "jax.scipy module": a Gaussian process, its likelihood and predictions."""
    jnp, linalg = jax.numpy, import_module(f"{jax.__name__}.scipy.linalg")
    x = jnp.array([0.3, 1.1, 1.9, 3.2, 4.4])
    y, far = jnp.sin(x), jnp.linspace(0.0, 5.0, 4)

    def covariance(params, a, b):
        def kernel(p, q):
            return params["size"] ** 2 * jnp.exp(-(((p - q) / params["width"]) ** 2))

        return jax.vmap(jax.vmap(kernel, (None, 0)), (0, None))(a, b)

    def factor(params):
        noisy = covariance(params, x, x) + params["noise"] ** 2 * jnp.eye(len(x))
        return linalg.cholesky(noisy, lower=True)

    def loss(params):
        root = factor(params)
        white = linalg.solve_triangular(root, y, lower=True)
        return 0.5 * white @ white + jnp.log(jnp.diag(root)).sum()

    params = {"size": 1.0, "width": 1.0, "noise": 0.1}
    params = jax.tree.map(jnp.float32, params)
    slope = jax.jit(jax.grad(loss))(params)
    across = covariance(params, far, x)
    mean = across @ linalg.cho_solve((factor(params), True), y)
    white = linalg.solve_triangular(factor(params), across.T, lower=True)
    spread = params["size"] ** 2 - (white**2).sum(0)
    return {"loss": loss(params), "slope": slope, "mean": mean, "spread": spread}


@program
def a_sampler_with_momentum(jax):
    """Page "jax.lax.scan": Hamiltonian Monte Carlo, some chains at once."""
    jnp, random, lax = jax.numpy, jax.random, jax.lax
    add = jax.tree.map

    def log_density(q):
        return -0.5 * (q["a"] ** 2).sum() - 2.0 * (q["b"] - q["a"].sum()) ** 2

    slope = jax.grad(log_density)

    def leap(i, pair):
        q, p = pair
        p = add(lambda p, g: p + 0.1 * g, p, slope(q))
        q = add(lambda q, p: q + 0.2 * p, q, p)
        return q, add(lambda p, g: p + 0.1 * g, p, slope(q))

    def energy(q, p):
        return log_density(q) - 0.5 * sum((x**2).sum() for x in jax.tree.leaves(p))

    def step(state, key):
        q, taken = state
        leaves, tree = jax.tree.flatten(q)
        *keys, last = random.split(key, len(leaves) + 1)
        p = [random.normal(key, x.shape) for key, x in zip(keys, leaves)]
        p = jax.tree.unflatten(tree, p)
        moved = lax.fori_loop(0, 4, leap, (q, p))
        good = jnp.log(random.uniform(last)) < energy(*moved) - energy(q, p)
        q = add(lambda new, old: jnp.where(good, new, old), moved[0], q)
        return (q, taken + good), q["b"]

    @jax.vmap
    def chain(key):
        start = {"a": jnp.zeros(2), "b": jnp.zeros(())}, 0
        return lax.scan(step, start, random.split(key, 6))

    (q, taken), path = jax.jit(chain)(random.split(random.key(4), 3))
    return {"q": q, "taken": taken, "path": path}


@program
def words_by_beams(jax):
    """Page "jax.lax.top_k": a beam search in a while loop, with beams that end."""
    jnp, lax = jax.numpy, jax.lax
    beams, words, end, longest = 3, 5, 0, 6
    table = jax.random.normal(jax.random.key(2), (words, words)) * 2.0

    def going(state):
        i, _, _, done = state
        return (i < longest) & ~done.all()

    def extend(state):
        i, scores, texts, done = state
        logs = jax.nn.log_softmax(table[texts[:, i - 1]])
        stays = jnp.where(jnp.arange(words) == end, 0.0, -jnp.inf)
        logs = jnp.where(done[:, None], stays, logs)
        scores, places = lax.top_k((scores[:, None] + logs).ravel(), beams)
        parents, word = places // words, places % words
        texts = texts[parents].at[:, i].set(word)
        return i + 1, scores, texts, done[parents] | (word == end)

    texts = jnp.zeros((beams, longest), jnp.int32).at[:, 0].set(3)
    scores = jnp.where(jnp.arange(beams) == 0, 0.0, -jnp.inf)
    start = 1, scores, texts, jnp.zeros(beams, bool)
    i, scores, texts, done = jax.jit(lax.while_loop, static_argnums=(0, 1))(
        going, extend, start
    )
    return {"length": i, "scores": scores, "texts": texts, "done": done}


@program
def keys_and_values_are_kept(jax):
    """Page "jax.lax.dynamic_update_slice": attention, at once and word by word."""
    jnp, lax, random = jax.numpy, jax.lax, jax.random
    size, heads, length = 8, 2, 5
    names = "query key value out".split()
    shapes = [(2, size, heads, size // heads)] * 3 + [(2, heads, size // heads, size)]
    keys = random.split(random.key(5), 5)
    layers = {n: random.normal(k, s) / 3 for n, k, s in zip(names, keys, shapes)}
    x = random.normal(keys[4], (length, size))

    def attend(layer, x, kept=None, i=0):
        q, k, v = (jnp.einsum("td,dhk->thk", x, layer[n]) for n in names[:3])
        if kept is not None:
            k, v = kept = [
                lax.dynamic_update_slice(old, new, (i, 0, 0))
                for old, new in zip(kept, (k, v))
            ]
        seen = jnp.arange(len(k)) <= jnp.arange(len(q))[:, None] + i
        scores = jnp.einsum("thk,shk->hts", q, k) / jnp.sqrt(size // heads)
        weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
        return x + jnp.einsum("hts,shk,hkd->td", weights, v, layer["out"]), kept

    @jax.jit
    def at_once(layers, x):
        return lax.scan(lambda x, layer: (attend(layer, x)[0], None), x, layers)[0]

    def word(kept, given):
        x, i = given

        def layer(x, given):
            return attend(given[0], x, given[1], i)

        x, kept = lax.scan(layer, x[None], (layers, kept))
        return kept, x[0]

    kept = [jnp.zeros((2, length, heads, size // heads))] * 2
    slowly = jax.jit(lambda kept: lax.scan(word, kept, (x, jnp.arange(length))))(kept)
    whole = at_once(layers, x)
    slope = jax.grad(lambda layers: (at_once(layers, x) ** 2).mean())(layers)
    same = jnp.allclose(whole, slowly[1], atol=1e-5)
    return {"whole": whole, "same": same, "slope": slope}


@program
def no_example_stands_out(jax):
    """Page "jax.vmap": gradients of single examples, clipped, added, with noise."""
    jnp, random, tree = jax.numpy, jax.random, jax.tree
    keys = random.split(random.key(6), 4)
    x, y = random.normal(keys[0], (6, 3)), random.bernoulli(keys[1], 0.5, (6,))
    params = {"w": random.normal(keys[2], (3,)), "b": jnp.zeros(())}

    def loss(params, x, y):
        logit = x @ params["w"] + params["b"]
        return -jax.nn.log_sigmoid(jnp.where(y, logit, -logit))

    def clipped(params, x, y):
        slope = jax.grad(loss)(params, x, y)
        length = jnp.sqrt(tree.reduce(lambda s, g: s + (g**2).sum(), slope, 0.0))
        return tree.map(lambda g: g / jnp.maximum(1.0, length / 0.5), slope)

    @jax.jit
    def update(params, key):
        slopes = jax.vmap(clipped, (None, 0, 0))(params, x, y)
        leaves, shape = tree.flatten(tree.map(lambda g: g.sum(0), slopes))
        noise = zip(leaves, random.split(key, len(leaves)))
        noisy = [g + 0.1 * random.normal(key, g.shape) for g, key in noise]
        step = tree.unflatten(shape, noisy)
        return tree.map(lambda p, g: p - 0.2 * g / len(x), params, step)

    return update(update(params, keys[3]), keys[0])


@program
def a_motion_and_its_gradient(jax):
    """Page "jax.experimental.ode": a neural differential equation is fitted."""
    jnp, ode = jax.numpy, import_module(f"{jax.__name__}.experimental.ode")
    key, times = jax.random.key(7), jnp.linspace(0.0, 1.0, 4)
    params = {"w": jax.random.normal(key, (2, 2)), "b": jnp.array([0.1, -0.2])}

    def motion(y, t, params):
        return jnp.tanh(params["w"] @ y + params["b"]) * (1.0 + t)

    def loss(params, start, times):
        path = ode.odeint(motion, start, times, params, rtol=1e-5, atol=1e-5)
        return ((path - jnp.array([1.0, 0.5])) ** 2).mean(), path

    slope = jax.value_and_grad(loss, (0, 1, 2), has_aux=True)
    (value, path), slopes = jax.jit(slope)(params, jnp.array([0.5, -0.5]), times)
    return {"loss": value, "path": path, "slopes": slopes}


@program
def layers_in_parts(jax):
    """Page "jax.sharding module": parameters and their moments lie in parts."""
    jnp, lax = jax.numpy, jax.lax
    utils = import_module(f"{jax.__name__}.experimental.mesh_utils")
    devices = jax.devices()
    mesh = jax.sharding.Mesh(utils.create_device_mesh((len(devices),)), ("parts",))
    P = jax.sharding.PartitionSpec
    cut, whole = (jax.sharding.NamedSharding(mesh, p) for p in (P("parts"), P()))
    params = {"in": jnp.ones((4, 6)) / 4, "out": jnp.linspace(-1.0, 1.0, 6)}
    layout = jax.tree.map(lambda p: cut if p.ndim > 1 else whole, params)
    params = jax.device_put(params, layout)
    x = jax.device_put(jnp.arange(8.0).reshape(2, 4) / 8, cut)

    def loss(params, x):
        hidden = jnp.tanh(x @ params["in"])
        hidden = lax.with_sharding_constraint(hidden, cut)
        return ((hidden @ params["out"] - 1.0) ** 2).mean()

    def step(params, moments, x):
        value, slope = jax.value_and_grad(loss)(params, x)
        moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, slope)
        moved = jax.tree.map(lambda p, m: p - 0.1 * m, params, moments)
        return moved, moments, value

    step = jax.jit(step, out_shardings=(layout, layout, whole), donate_argnums=(0, 1))
    moments, losses = jax.tree.map(jnp.zeros_like, params), []
    for _ in range(3):
        params, moments, value = step(params, moments, x)
        losses.append(value)
    parts = [shard.data.shape for shard in params["in"].addressable_shards]
    return {"losses": losses, "params": params, "parts": parts}


@program
def centres_of_clusters(jax):
    """Page "jax.lax.while_loop": k-means until it stands still, from several starts."""
    jnp, random, lax = jax.numpy, jax.random, jax.lax
    ops = import_module(f"{jax.__name__}.ops")
    middles = jnp.repeat(jnp.arange(3.0) * 4, 4)
    x = random.normal(random.key(8), (12, 2)) + middles[:, None]

    def nearest(centres):
        distances = jnp.linalg.norm(x[:, None] - centres, axis=-1)
        return distances.argmin(1), distances.min(1).mean()

    def improved(state):
        centres, _, error, n = state
        own, found = nearest(centres)
        sizes = ops.segment_sum(jnp.ones(len(x)), own, 3)[:, None]
        sums = ops.segment_sum(x, own, 3)
        return jnp.where(sizes > 0, sums / sizes, centres), error, found, n + 1

    def going(state):
        return state[1] - state[2] > 1e-5

    @jax.jit
    def cluster(key):
        start = random.choice(key, x, (3,), replace=False), jnp.inf, 1e9, 0
        centres, _, error, n = lax.while_loop(going, improved, improved(start))
        return centres, error, n

    centres, errors, steps = jax.vmap(cluster)(random.split(random.key(9), 4))
    best = errors.argmin()
    own, centres = nearest(centres[best])[0], centres[best]
    return {"errors": errors, "steps": steps, "best": centres, "own": own}


SUBJECTS = {
    "own rules": ("Custom", "jax.custom"),
    "forgetting": ("Gradient checkpointing",),
    "random numbers": ("Pseudorandom", "jax.random"),
    "errors": ("JAX Errors",),
}


def subject(f):
    """Return the subject of a program, one of those of `SUBJECTS`, or None."""
    page = f.__doc__.removeprefix('Page "')
    found = [name for name, pages in SUBJECTS.items() if page.startswith(pages)]
    return found[0] if found else None
