"""Two launches in the same loops, and which steps of a program need which."""

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import grad, jit, make_jaxpr
from minijax.fusion.fusion_pass import (
    buffer_uses,
    common_axis_order,
    fuse,
    fuse_same_loops,
)
from minijax.fusion.greedy import producer_consumer_edges
from minijax.fusion.merging import fused_launch, fusion_group_of
from minijax.kernels.checker import check_kernel
from minijax.kernels.lowering import lower
from minijax.llvm.targets import Target, current_target
from minijax.passes.pipeline import simplify

X = jnp.ones((3, 4))


def parts_of(f):
    """The parts of the launches of a function."""
    return [fusion_group_of(step) for step in lower(make_jaxpr(f)(X)).steps]


@pytest.mark.parametrize(
    "f, sizes",
    [
        (lambda x: jnp.exp(x) + 1.0, (12,)),
        (lambda x: jnp.exp(x).sum(1), (3, 4)),
        (lambda x: jnp.exp(x).sum(), (12,)),
        (lambda x: x.sum() * 2.0, (12,)),
        (lambda x: x - x.sum(1, keepdims=True), (3, 4)),
        (lambda x: x - x.sum(0, keepdims=True), (4, 3)),
        (lambda x: (x.sum(0), x.sum(1)), None),
    ],
)
def test_loops_of_two(f, sizes):
    first, second = parts_of(f)
    found = fuse_same_loops(first, second, producer_consumer_edges(first, second))
    found = found and (found.producer.sizes, found.consumer.sizes)
    assert found == (sizes and (sizes, sizes))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: jnp.exp(x) + 1.0,
        lambda x: jnp.exp(x).sum(1),
        lambda x: x - x.sum(1, keepdims=True),
        lambda x: x - x.sum(0, keepdims=True),
        lambda x: jnp.exp(x).T * x.T,
        lambda x: (x * 2.0, jnp.argmax(x, 1)),
    ],
)
def test_the_tables_of_two_are_those_of_their_kernel(f):
    first, second = parts_of(f)
    candidate = fuse_same_loops(first, second, producer_consumer_edges(first, second))
    both = candidate.as_group({link.buffer for link in candidate.edges})
    launch = fused_launch(both, both.made)
    check_kernel(launch.kernel)
    whole, target = fusion_group_of(launch), current_target()
    assert both.ops == whole.ops and both.made.keys() == whole.made.keys()
    assert {buffer for buffer, _ in both.loads} == {b for b, _ in whole.loads}
    assert both.folding(both.made).keys() == whole.folding(whole.made).keys()
    assert len(both.axis_orders) == len(whole.axis_orders)
    for buffer in both.made:
        assert 0 < both.cost(buffer, target) <= whole.cost(buffer, target)


def test_a_kernel_is_written_when_its_part_is_settled(monkeypatch):
    """Of elements that are made at one index only no kernel is written before."""
    written = []

    def counted(*args):
        written.append(args)
        return fused_launch(*args)

    monkeypatch.setattr("minijax.fusion.fusion_pass.fused_launch", counted)

    def softmax(x):
        e = jnp.exp(x - x.max(1, keepdims=True))
        return e / e.sum(1, keepdims=True)

    fused = fuse(lower(make_jaxpr(lambda x: (softmax(x), softmax(x.T)))(X)))
    assert len(written) == len(fused.steps)


def test_orders_in_a_circle_have_no_order_of_axes():
    assert common_axis_order([0, 1], {(1, 0)}) == [1, 0]
    assert common_axis_order([0, 1], {(0, 1), (1, 0)}) is None


def test_uses():
    program = lower(make_jaxpr(lambda x: jnp.exp(x) - x.max(1, keepdims=True))(X))
    uses, last = buffer_uses(program), len(program.steps) - 1
    assert uses.predecessors[last] == {0, 1} and uses.successors[0] == {last}
    [made] = program.steps[0].writes
    assert uses.producers[made] == 0 and uses.consumers[made] == [last]
    assert made not in uses.live_out and not uses.multiply_written


BOX = (3, 131, 700)  # more numbers than a near cache holds


@pytest.mark.parametrize(
    "f, kernels",
    [
        (lambda x: x.sum((0, 2)), 2),
        (lambda x: x.sum(2).sum(0), 2),
        (lambda x: jnp.exp(x).max((0, 2)) * 2.0, 2),
        (lambda x: x.transpose(1, 0, 2).sum((1, 2)), 2),
        (lambda x: x.transpose(2, 1, 0).sum((0, 2)), 2),
        (lambda x: x.sum((1, 2)), 1),
        (lambda x: x.sum((0, 1)), 1),
        (lambda x: x[:, :, :9].sum((0, 2)), 1),
        (lambda x: x.astype(jnp.bfloat16).sum((0, 2)), 2),
        (lambda x: x[:, :9].sum((0, 2)), 1),
    ],
)
def test_rows_are_folded_in_the_order_of_memory(f, kernels):
    closed = make_jaxpr(f)(jnp.ones(BOX))
    assert len(fuse(lower(closed), current_target()).steps) == kernels


@pytest.mark.parametrize("layout", [(0, 1, 2), (2, 0, 1), (1, 2, 0), (2, 1, 0)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "complex64", "bool"])
@pytest.mark.parametrize("axes", [(0, 2), (0, 1), (1, 2), (0,), (2,), (0, 1, 2)])
def test_folds_of_large_boxes(layout, dtype, axes):
    numbers = np.random.default_rng(0).integers(-9, 10, BOX).astype(dtype)
    x = numbers.transpose(np.argsort(layout)).copy().transpose(layout)
    names = ["any", "all"] if dtype == "bool" else ["sum"]
    names += ["max", "min"] if dtype in ("float32", "int8") else []
    for name in names:
        expected = getattr(np.asarray(x, "int64") if dtype == "int8" else x, name)(axes)
        if (name, dtype) == ("sum", "float16"):
            expected = x.astype("float64").sum(axes).astype(dtype)
        found = np.asarray(jit(lambda x, name=name: getattr(x, name)(axes))(x))
        assert np.array_equal(found, expected.astype(found.dtype)), name


@pytest.mark.parametrize("length", [16, 64])
def test_costs_are_counted_no_further_than_their_limit(length, monkeypatch):
    """Each reduction asks for the costs of the chain before it, which is long."""

    def f(x):
        for _ in range(length):
            x = x * 1.01 - x.mean()
        return x.sum()

    asked, price = [], Target.price
    monkeypatch.setattr(Target, "price", lambda *x: asked.append(x) or price(*x))
    fuse(lower(simplify(make_jaxpr(grad(f))(jnp.ones(100)))))
    assert len(asked) < 100 * length
