"""`dce_sink`, `stage` and `ragged_all_to_all`, as far as JAX runs them on a CPU."""

import jax
import numpy as np
import pytest

import minijax


def watched(top):
    def f(x):
        top.lax.dce_sink({"a": x * 2, "b": top.numpy.sin(x)})
        return x + top.lax.stage(1)

    return f


def loop(top):
    def f(x):
        def test(c):
            top.lax.dce_sink(c + 1)
            return c < 5

        return top.lax.while_loop(test, watched(top), x)

    return f


PROGRAMS = {
    "plain": lambda top: top.make_jaxpr(watched(top)),
    "jit": lambda top: top.make_jaxpr(top.jit(watched(top))),
    "grad": lambda top: top.make_jaxpr(top.grad(watched(top))),
    "while": lambda top: top.make_jaxpr(loop(top)),
    "stage": lambda top: top.make_jaxpr(lambda x: top.lax.stage(x) + top.lax.stage(2)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_those_of_jax(name):
    ours, theirs = [str(PROGRAMS[name](top)(1.0)) for top in (minijax, jax)]
    assert ours.split() == theirs.split()


@pytest.mark.parametrize("x", [3.0, 2, 1j, np.float16(2), np.arange(3)])
def test_what_is_staged_has_the_type_of_jax(x):
    assert repr(minijax.lax.stage(x)) == repr(jax.lax.stage(x))


@pytest.mark.parametrize(
    ("place", "value"), [(2, np.zeros(2)), (4, np.zeros((2, 1), int))]
)
def test_offsets_are_refused_as_in_jax(place, value):
    said = []
    for top in minijax, jax:
        args = [np.zeros(3, "float32")] * 2 + [np.zeros(2, int)] * 4
        args[place] = value

        def exchange(*args, top=top):
            return top.lax.ragged_all_to_all(*args, axis_name="i")

        auto = (top.sharding.AxisType.Auto,)
        spec, mesh = top.P("i"), top.make_mesh((1,), ("i",), axis_types=auto)
        f = top.shard_map(exchange, mesh=mesh, in_specs=spec, out_specs=spec)
        with pytest.raises(ValueError, match="ragged_all_to_all") as caught:
            f(*args)
        said.append(str(caught.value).split("ragged_all_to_all ")[1][:34])
    assert said[0] == said[1]
