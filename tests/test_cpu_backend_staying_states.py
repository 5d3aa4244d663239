"""States of loops that stay in their memory, and those that can't."""

import numpy as np
import pytest

import minijax
from minijax import jit, lax, make_jaxpr
from minijax import numpy as jnp
from minijax.cpu_backend.backend import carries_of, may_overwrite_or_stay
from minijax.fusion.fusion_pass import fuse
from minijax.kernels.lowering import lower
from minijax.memory.allocator import check_plan
from minijax.memory.buffer_assignment import plan_memory
from tests.commands import LONG

# What becomes of a state `x`, beside a state `y`, in iteration `i`; `n` numbers each.
CHANGES = {
    "moved": lambda i, x, y, n: 0.5 * x + y,
    "one added": lambda i, x, y, n: x.at[i % n].add(0.5),
    "one set": lambda i, x, y, n: x.at[(3 * i) % n].set(y[i % n]),
    "two updates": lambda i, x, y, n: x.at[i].add(0.5).at[(i + 2) % n].multiply(0.5),
    "a neighbour": lambda i, x, y, n: x.at[i % n].add(x[(i + 1) % n]),
    "some at once": lambda i, x, y, n: x.at[jnp.array([0, 3, 3])].add(y[:3]),
    "a part": lambda i, x, y, n: lax.dynamic_update_slice(x, 0.5 * y[:3], (i,)),
    "the end first": lambda i, x, y, n: x.at[:5].set(x[-5:]),
    "rolled": lambda i, x, y, n: jnp.roll(x, 1) + 0.5,
    "backwards": lambda i, x, y, n: 0.5 * x[::-1],
    "sorted": lambda i, x, y, n: jnp.sort(x),
    "running": lambda i, x, y, n: 0.01 * jnp.cumsum(x),
    "summed": lambda i, x, y, n: 0.001 * x.sum() * y,
    "as it was": lambda i, x, y, n: x,
    "the other": lambda i, x, y, n: y,
    "chosen": lambda i, x, y, n: lax.cond(i % 2 == 0, lambda: x, lambda: 0.5 * y),
    "a loop": lambda i, x, y, n: lax.fori_loop(
        0, 3, lambda j, z: z.at[j].add(0.5), x
    ),
    "a loop that turns": lambda i, x, y, n: lax.fori_loop(
        0, 3, lambda j, z: z[::-1] + 0.5, x
    ),
    "a while loop": lambda i, x, y, n: lax.while_loop(
        lambda c: c[1] < 2, lambda c: (0.5 * c[0] + y, c[1] + 1), (x, 0)
    )[0],
}


def fori(step, count, *states):
    return lax.fori_loop(0, count, step, states)


def while_loop(step, count, *states):
    def body(state):
        return state[0] + 1, step(state[0], state[1])

    return lax.while_loop(lambda state: state[0] < count, body, (0, states))[1]


def scan(step, count, *states):
    def body(states, i):
        total = states[0].sum()
        return step(i, states), total

    return lax.scan(body, states, jnp.arange(count))


LOOPS = [fori, while_loop, scan]


def program(rng):
    """A loop over one to three states, in which each is changed in some way."""
    loop, count = LOOPS[rng.integers(3)], int(rng.choice([0, 1, 2, 3, 5]))
    changes = [CHANGES[name] for name in rng.choice([*CHANGES], rng.integers(1, 4))]
    others = rng.integers(len(changes), size=len(changes))
    order, in_turn = rng.permutation(len(changes)), rng.random() < 0.5
    if rng.random() < 0.6:
        order = np.sort(order)

    def f(*states):
        def step(i, states):
            new = [*states]
            for place, (change, other) in enumerate(zip(changes, others)):
                old = new if in_turn else states
                new[place] = change(i, old[place], old[other], len(states[0]))
            return tuple([new[place] for place in order])

        return loop(step, count, *states)

    return f, len(changes)


@pytest.mark.parametrize("seed", range(400 if LONG else 24))
def test_random_loops(seed):
    rng = np.random.default_rng(seed)
    f, count = program(rng)
    size = int(rng.choice([63, 64, 65, 80, 129, 257]))
    arrays = [rng.normal(size=size).astype("float32") for _ in range(count)]
    given = [jnp.asarray(array) for array in arrays]
    wanted = minijax.tree_util.tree_leaves(jit(f, backend="interpreter")(*given))
    found = minijax.tree_util.tree_leaves(jit(f)(*given))
    for ours, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, right, rtol=1e-4, atol=1e-4)
    for array, kept in zip(given, arrays, strict=True):  # nobody gave them away
        np.testing.assert_array_equal(array, kept)
    steps = fuse(lower(make_jaxpr(f)(*given)))
    check_plan(plan_memory(steps, carries=carries_of))


def exchanges(f, size=1000):
    """Whether the addresses of a loop's state are exchanged."""
    text = jit(f).lower(jnp.zeros(size)).compile().as_text("llvm")
    return "phi i8*" in text


@pytest.mark.parametrize("name", ["moved", "one added", "two updates", "a part"])
def test_states_that_stay(name):
    change = CHANGES[name]
    for loop in (fori, while_loop):
        f = lambda x, loop=loop: loop(  # noqa: E731
            lambda i, s: (change(i, s[0], s[0], 1000),), 3, x
        )
        assert not exchanges(f), loop.__name__


def test_a_state_that_is_needed_to_the_end_goes_to_and_fro():
    change = CHANGES["backwards"]
    assert exchanges(lambda x: fori(lambda i, s: (change(i, s[0], s[0], 0),), 3, x))


def test_an_update_of_one_number_moves_no_other():
    """Once each iteration copied all of them to the state's other buffer."""

    def f(x):
        return lax.fori_loop(0, 200, lambda i, x: x.at[i].add(1.0), x)

    steps = fuse(lower(make_jaxpr(f)(jnp.zeros(1000))))
    plan = plan_memory(steps, (), may_overwrite_or_stay, carries_of)
    [body] = [each for plans in plan.nested.values() for each in plans]
    stores = [
        store
        for step in body.steps
        if hasattr(step, "kernel")
        for store in step.kernel.stores
    ]
    assert any(store.update for store in stores)
    assert not any(store.axes for store in stores)
