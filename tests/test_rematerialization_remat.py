"""Forgetful calls: the values of plain ones, fewer residuals, less memory."""

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import (
    ad_checkpoint,
    checkpoint,
    checkpoint_policies,
    grad,
    jit,
    lax,
    make_jaxpr,
    random,
    value_and_grad,
)
from minijax.ad_checkpoint import checkpoint_name, print_saved_residuals
from minijax.custom_derivatives import linear_call
from minijax.custom_derivatives.custom_jvp_vjp import callee_rules, transparent_calls
from minijax.jaxprs.checker import check_jaxpr
from minijax.jitting.compilation import backends, default_backends
from minijax.passes.pipeline import simplify
from minijax.rematerialization.jaxpr_transforms import inline_calls_by_rule
from minijax.rematerialization.remat import remat_p
from tests import own_rules_cases, remat_cases
from tests.commands import LONG, some


class Remembering:
    """The package, with a `checkpoint` that does nothing."""

    def checkpoint(self, fun, static_argnums=None, **options):
        return fun

    def __getattr__(self, name):
        return getattr(minijax, name)


FUNCTIONS = remat_cases.functions(minijax)
PLAIN = remat_cases.functions(Remembering())
WAYS = own_rules_cases.transformations(minijax)
CASES = [(name, way) for name in FUNCTIONS for way in WAYS]
CASES = [(name, way) for name, way in CASES if remat_cases.is_possible(name, (way,))]


@pytest.mark.parametrize(("name", "way"), some(CASES, 2))
def test_values_are_those_of_plain_calls(name, way):
    found, wanted = WAYS[way](FUNCTIONS[name]), WAYS[way](PLAIN[name])
    np.testing.assert_allclose(found(1.25), wanted(1.25), rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_backends_agree(name):
    way = "grad" if remat_cases.is_possible(name, ("grad",)) else "jvp"
    f = WAYS[way](FUNCTIONS[name])
    check_jaxpr(make_jaxpr(f)(1.25).jaxpr)
    wanted = np.asarray(f(1.25))
    for backend in ("interpreter", "python", default_backends["cpu"]):
        assert backend in backends
        found = jit(f, backend=backend)(1.25)
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6)


def chain(forget, depth=16, count=4):
    """Return the sum after many layers, in pieces."""
    w = jnp.asarray(np.random.default_rng(0).normal(size=(32, 32)), np.float32)

    @forget
    def piece(x):
        for _ in range(depth // count):
            x = jnp.sin(jnp.tanh(x @ w))
        return x

    def f(x):
        for _ in range(count):
            x = piece(x)
        return x.sum()

    return f


def rounds(forget):
    """Return the sum after a scan whose rounds have several layers."""

    @forget
    def body(x, y):
        for _ in range(4):
            x = jnp.sin(jnp.tanh(x @ x) * y)
        return x, None

    return lambda x: lax.scan(body, x, jnp.arange(1.0, 9.0))[0].sum()


def temporaries(f, x):
    """Return the bytes that the compiled gradient has besides arguments and result."""
    compiled = jit(grad(f)).lower(x).compile()
    return compiled.memory_analysis().temp_size_in_bytes


@pytest.mark.parametrize("program", [chain, rounds])
def test_the_compiled_gradient_needs_less_memory(program):
    x = jnp.ones((32, 32))
    plain, forgetful = program(lambda f: f), program(checkpoint)
    np.testing.assert_allclose(jit(grad(plain))(x), jit(grad(forgetful))(x), rtol=1e-5)
    assert temporaries(forgetful, x) < 0.6 * temporaries(plain, x)


def test_without_a_barrier_the_compiler_remembers():
    x = jnp.ones((32, 32))
    careless = chain(lambda f: checkpoint(f, prevent_cse=False))
    assert temporaries(careless, x) == temporaries(chain(lambda f: f), x)
    assert temporaries(rounds(checkpoint), x) == temporaries(
        rounds(lambda f: checkpoint(f, prevent_cse=False)), x
    )


POLICIES = {
    "none": None,
    "dots": checkpoint_policies.dots_saveable,
    "everything": checkpoint_policies.everything_saveable,
    "named": checkpoint_policies.save_only_these_names("inside"),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("deep", [False, True])
def test_a_policy_looks_into_loops(name, deep):
    """The sines inside are computed twice, or kept; a product is kept as well."""

    def step(x, w):
        return jnp.sin(checkpoint_name(jnp.sin(x) @ w, "inside")), x.sum()

    def loop(x, ws):
        if deep:
            return lax.scan(lambda x, w: (loop_of_two(x, w), None), x, ws)[0].sum()
        return lax.scan(step, x, ws)[0].sum()

    def loop_of_two(x, w):
        return lax.scan(lambda x, _: step(x, w), x, length=2)[0]

    x, ws = jnp.arange(3.0), jnp.arange(36.0).reshape(4, 3, 3) / 20
    forgetful = checkpoint(loop, policy=POLICIES[name])
    for f in (grad(forgetful, (0, 1)), jit(grad(forgetful, (0, 1)))):
        for ours, plain in zip(f(x, ws), grad(loop, (0, 1))(x, ws)):
            np.testing.assert_allclose(ours, plain, rtol=2e-5)
    program = make_jaxpr(grad(forgetful))(x, ws)
    check_jaxpr(program)
    [again] = [eqn for eqn in program.eqns if eqn.primitive is remat_p]
    text = str(again.params["jaxpr"])
    products_twice = text.count("dot_general") - 1  # one is of the gradient
    assert products_twice == (name == "none")
    assert (text.count(" sin ") == 0) == (name == "everything")


def test_a_flag_for_each_argument():
    """What depends on a protected argument is computed twice, and nothing else is."""

    def sines(flags):
        f = checkpoint(lambda x, y: jnp.sin(x) * jnp.sin(jnp.sin(y)), prevent_cse=flags)
        program = make_jaxpr(value_and_grad(f, (0, 1)))(1.0, 1.0)
        return str(simplify(program)).count(" sin ")

    flags = [False, True, (False, False), (True, False), (False, True), (True, True)]
    assert [*map(sines, flags)] == [3, 6, 3, 4, 5, 6]


def test_flags_that_do_not_fit():
    with pytest.raises(ValueError, match="Tuple arity mismatch: 2 != 1"):
        checkpoint(lambda x, y: x * y, prevent_cse=[True])(1.0, 2.0)


def test_passes_keep_the_barrier_and_drop_names():
    def f(x):
        return jnp.sin(checkpoint_name(jnp.sin(x), "inner"))

    less = simplify(make_jaxpr(grad(checkpoint(f)))(1.0))
    found = [eqn.primitive.name for eqn in less.eqns]
    assert "optimization_barrier" in found
    assert "name" not in found and "remat2" not in found


def test_a_barrier_costs_nothing():
    f = jit(lambda x, y: lax.optimization_barrier((x, y)))
    assert not f.lower(1.0, 2).cost_analysis().get("flops", 0)
    assert "optimization_barrier" not in f.lower(1.0, 2).compile().as_text()


def kept(f, *args):
    return len(minijax.linearize(f, *args)[1].args[0])


@pytest.mark.parametrize(
    ("policy", "count"),
    [
        (None, 2),
        ("nothing_saveable", 2),
        ("everything_saveable", 6),
        ("dots_saveable", 4),
        ("dots_with_no_batch_dims_saveable", 4),
    ],
)
def test_residuals_of_policies(policy, count):
    def network(w, x):
        return jnp.tanh(jnp.sin(x @ w) @ w)

    w, x = jnp.ones((3, 3)), jnp.ones((2, 3))
    policy = policy and getattr(checkpoint_policies, policy)
    assert kept(checkpoint(network, policy=policy), w, x) == count


def test_batched_products_may_be_told_apart():
    a = jnp.ones((2, 3, 3))
    f = lambda x: jnp.sin(jnp.matmul(x, x))  # noqa: E731
    policies = checkpoint_policies
    plain = policies.dots_with_no_batch_dims_saveable
    assert kept(checkpoint(f, policy=plain), a) == 1
    assert kept(checkpoint(f, policy=policies.dots_saveable), a) == 2


def test_a_policy_looks_into_calls():
    f = jit(lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "a")))
    policy = checkpoint_policies.save_only_these_names("a")
    text = str(make_jaxpr(grad(checkpoint(f, policy=policy)))(1.0))
    assert text.count("= sin") == 2 and text.count("= cos") == 2


def test_effects_happen_once(capfd):
    def f(x):
        minijax.debug.print("x is {}", x)
        return jnp.sin(jnp.sin(x))

    for g in (f, jit(f)):
        grad(checkpoint(g))(1.0)
        minijax.effects_barrier()
        assert capfd.readouterr().out.count("x is") == 1


def test_a_function_is_written_down_once():
    runs = []

    @checkpoint
    def f(x):
        runs.append(x)
        return jnp.sin(x)

    for x in (1.0, 2.0):
        f(x), grad(f)(x)
    assert len(runs) == 1
    f(jnp.ones(3))
    assert len(runs) == 2


def test_a_tracer_from_outside_is_not_kept():
    state = []
    f = checkpoint(lambda y: jnp.sin(state[0] * y))

    def g(x):
        state[:] = [x]
        return f(2.0)

    for x in (1.0, 3.0):
        np.testing.assert_allclose(grad(g)(x), 2.0 * np.cos(2.0 * x), rtol=1e-5)


def test_static_arguments():
    def power(x, n, *, up):
        return x**n if up else x

    with pytest.raises(minijax.errors.TracerBoolConversionError):
        checkpoint(power, static_argnums=(-1,))(2.0, 3, up=True)
    f = checkpoint(power, static_argnums=1, static_argnames="up")
    assert f(2.0, 3, up=True) == 8.0 and f(2.0, 3, up=False) == 2.0
    assert grad(lambda x: f(x, 3, up=True))(2.0) == 12.0


def test_offloading_is_refused():
    for name in ("offload_dot_with_no_batch_dims", "save_and_offload_only_these_names"):
        with pytest.raises(NotImplementedError, match="arrays have one memory"):
            getattr(checkpoint_policies, name)("device", "pinned_host")


def test_residuals_are_told_by_source(capsys):
    def f(w, x):
        return jnp.sin(checkpoint_name(x @ w, "product")) * 2.0

    policy = checkpoint_policies.save_only_these_names("product")
    print_saved_residuals(checkpoint(f, policy=policy), jnp.ones((3, 3)), jnp.ones(3))
    lines = sorted(capsys.readouterr().out.split("\n")[:-1])
    assert lines[:2] == ["f32[3,3] from the argument w", "f32[3] from the argument x"]
    assert lines[2].startswith("f32[3] named 'product' from test_remater")


def test_inlined_has_no_calls():
    closed = make_jaxpr(jit(checkpoint(lambda x: jit(jnp.sin)(x))))(1.0)
    plain = {each: callee_rules[each] for each in transparent_calls}
    assert [eqn.primitive for eqn in inline_calls_by_rule(closed, plain).eqns] == [
        remat_p
    ]
    calls = {**plain, remat_p: callee_rules[remat_p]}
    assert [eqn.primitive.name for eqn in inline_calls_by_rule(closed, calls).eqns] == [
        "sin"
    ]


@pytest.mark.parametrize("policy", ["everything_saveable", "dots_saveable"])
def test_a_sampler_keeps_its_rule(policy):
    """The numbers of gamma come from a loop; their slope does not."""

    def f(a):
        return random.gamma(random.key(0), a, (3,)).sum() ** 2

    rule = getattr(checkpoint_policies, policy)
    assert checkpoint(f, policy=rule)(2.5) == f(2.5)
    assert grad(checkpoint(f, policy=rule))(2.5) == grad(f)(2.5)


@pytest.mark.parametrize("seed", range(5))
def test_random_programs(seed):
    rng = np.random.default_rng(seed)
    for _ in range(4 if LONG else 2):
        remat_cases.check_random(minijax, Remembering(), rng)


def test_known_literals_come_back_as_arrays():
    """Seed 202533 of `tests.random_calls`: a result that is a number of the program."""
    marked = minijax.checkpoint(lambda x: (1.0, 2 * x))
    for transform in (minijax.linearize, minijax.vjp):
        (one, _), _ = transform(marked, np.float32(3))
        assert isinstance(one, minijax.Array) and one.weak_type


@pytest.mark.parametrize("transform", ["linearize", "vjp"])
@pytest.mark.parametrize(
    ("around", "wanted"), [("jit", 3.5), ("vmap", 5.75), ("jvp", 2.0), ("grad", 2.0)]
)
def test_known_literals_have_types_inside_of_programs(transform, around, wanted):
    marked, seen = checkpoint(lambda x: (x * 2.0, 1.0, np.float32(4))), []

    def f(x):
        outs, _ = getattr(minijax, transform)(marked, x)
        seen.extend(outs[1:])
        return outs[0] + outs[1].astype(x.dtype)

    assert WAYS[around](f)(1.25) == wanted
    one, four = seen[:2]
    assert one.weak_type and not four.weak_type and one.shape == four.shape == ()
    closed = make_jaxpr(WAYS[around](f))(np.float32(1.25))
    assert not closed.consts


def test_what_a_policy_may_answer():
    a = jnp.eye(2)

    def f(a):
        return jnp.sin(a @ a).sum()

    def answering(answer):
        return checkpoint(f, policy=lambda *_, **__: answer)

    saved, again = ad_checkpoint.Saveable, ad_checkpoint.Recompute
    counts = [kept(answering(answer), a) for answer in (saved, True, again, False)]
    assert counts[0] == counts[1] > counts[2] == counts[3]
    moved = ad_checkpoint.Offloadable("device", "pinned_host")
    for answer, error in ((moved, NotImplementedError), (None, TypeError)):
        with pytest.raises(error, match="policy"):
            grad(answering(answer))(a)


def test_dots_saveable_keeps_convolutions():
    x, w = jnp.ones((1, 1, 8)), jnp.ones((1, 1, 3))

    def f(x):
        return jnp.sin(lax.conv(x, w, (1,), "VALID")).sum()

    policies, found = checkpoint_policies, []
    for policy in (policies.dots_saveable, policies.dots_with_no_batch_dims_saveable):
        _, slope = minijax.linearize(checkpoint(f, policy=policy), x)
        found.append((1, 1, 6) in [value.shape for value in slope.args[0]])
    assert found == [True, False]


def solved(w):
    """A solution whose own equations have no derivative: its rule must be asked."""
    return lax.custom_linear_solve(
        lambda u: u * 2.0, w, lambda mv, b: lax.stop_gradient(b / 2.0), symmetric=True
    )


def halved(w):
    """A linear call of which the same is true."""

    def there(_, x):
        return lax.stop_gradient(x * 2.0)

    return linear_call(there, lambda _, c: c * 2.0, (), w)


def by_matrix(w):
    """A solution by a factorisation."""
    matrix = jnp.array([[3.0, 1.0], [1.0, 4.0]])
    return jnp.linalg.solve(matrix, jnp.stack([w, 2.0 * w])).sum()


NAMES = ["dots_saveable", "everything_saveable", "nothing_saveable"]


@pytest.mark.parametrize("f", [solved, halved, by_matrix])
@pytest.mark.parametrize("policy", NAMES)
def test_policies_leave_rules_of_solutions_alone(f, policy):
    def g(w):
        return jnp.sin(f(w))

    kept = checkpoint(g, policy=getattr(checkpoint_policies, policy))
    for way in (grad, lambda h: grad(grad(h)), lambda h: jit(grad(grad(h)))):
        assert np.allclose(way(kept)(0.3), way(g)(0.3), rtol=1e-5)


def test_static_arguments_that_are_equal_and_others():
    divided = minijax.checkpoint(lambda x, k: x / k, static_argnums=1)
    assert [float(divided(1.0, k)) for k in (0.0, -0.0)] == [np.inf, -np.inf]
    filled = minijax.checkpoint(lambda x, k: x * k[0], static_argnums=1)
    kinds = [filled(jnp.int32(1), (k,)).dtype for k in (1, True, 1.0)]
    assert kinds == ["int32", "int32", "float32"]
