"""Programs for a card: which shapes their launches have, and how many there are."""

import pytest

import minijax.numpy as jnp
from minijax import grad, lax, make_jaxpr, vmap
from minijax.fusion.fusion_pass import fuse
from minijax.gpu.codegen import LaunchShape, launch_renderers
from minijax.gpu.schedules import (
    ScanShape,
    TileShape,
    VectorShape,
    choose_launch,
    specialize_for_gpu,
)
from minijax.kernels.lowering import lower
from tests.cuda_cases import kernels_of


def on_card(f, *args):
    return specialize_for_gpu(fuse(lower(make_jaxpr(f)(*args))))


def softmax(x):
    e = jnp.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def layer_norm(x, g, b):
    x = x - x.mean(axis=1, keepdims=True)
    return x / jnp.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * g + b


WIDE, LONG = jnp.zeros((1024, 1024)), jnp.zeros(1_000_000)
ROW = WIDE[0]
LAUNCHES = {
    "bias and SeLU": (
        lambda x, b: jnp.where(x + b > 0, x + b, jnp.expm1(x + b)), 1, WIDE, ROW,
    ),
    "softmax": (softmax, 1, WIDE),
    "layer norm": (layer_norm, 1, WIDE, ROW, ROW),
    "its gradient": (grad(lambda *xs: (layer_norm(*xs) ** 3).sum()), 3, WIDE, ROW, ROW),
    "a sum": (lambda x: x.sum(), 2, LONG),
    "shares": (lambda x: x / x.sum(), 3, LONG),
    "totals": (jnp.cumsum, 3, LONG),
    "maxima": (lambda x: jnp.maximum(x, -1).sum(), 2, jnp.zeros((5000, 40))),
    "columns": (lambda x: x.sum(axis=0), 2, jnp.zeros((100_000, 1000))),
}  # fmt: skip


@pytest.mark.parametrize("name", LAUNCHES)
def test_launches_are_few_and_large(name):
    f, most, *args = LAUNCHES[name]
    steps = on_card(f, *args).steps
    assert len(steps) <= most
    first = choose_launch(steps[0].kernel)
    assert first.blocks(steps[0].kernel) >= 64


SHAPES = {
    VectorShape: (lambda x: x * 2, WIDE),
    TileShape: (lambda x: x.T * 2, WIDE),
    ScanShape: (lambda x: jnp.cumsum(x, axis=1), WIDE),
    LaunchShape: (softmax, WIDE),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_each_kind_of_kernel_has_its_shape(kind):
    f, x = SHAPES[kind]
    [kernel] = kernels_of(f, x)
    shape = choose_launch(kernel)
    assert type(shape) is kind and kind in launch_renderers
    assert kind.__name__ in str(shape)


def test_unaligned_arrays_have_no_vectors():
    [kernel] = kernels_of(lambda x: x * 2, WIDE)
    assert type(choose_launch(kernel, unaligned={"x"})) is LaunchShape


def test_kernels_in_loops_are_cut_too():
    def total(x):
        return lax.fori_loop(0, 5, lambda i, s: s + (x * s).sum(), 0.0)

    [loop] = [step for step in on_card(total, LONG).steps if step.programs]
    assert len(loop.body.steps) >= 2


def test_examples_side_by_side():
    steps = on_card(vmap(lambda x: x / x.sum()), WIDE).steps
    assert len(steps) == 1


@pytest.mark.parametrize("size, launches", [(9001, 1), (2**15, 1), (2**15 + 1, 3)])
def test_a_sum_that_is_divided_by_is_cut_where_it_is_not_joined(size, launches):
    program = on_card(lambda y: y / y.sum(), jnp.zeros(size))
    assert len(program.steps) == launches
