"""What meshes refuse: each bad input is an error that says what is wrong, and soon."""

import os
import subprocess
import sys
import time
from functools import partial

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import P, config, jit, lax, make_mesh, pmap, pure_callback, shard_map
from minijax.sharding import Mesh, NamedSharding

MESH = make_mesh((2,), ("x",))
MAP = {"mesh": MESH, "in_specs": P("x"), "out_specs": P("x")}
AS_X = NamedSharding(MESH, P("x"))
V = jnp.arange(4.0)


def mapped(f, *args, **how):
    return shard_map(f, **MAP | how)(*args)


def placed(x, *spec, mesh=MESH):
    return minijax.device_put(x, NamedSharding(mesh, P(*spec)))


def diverging(v):
    return lax.cond(v[0] > 1, lambda v: lax.psum(v, "x") + v, lambda v: v, v)


def grouped(v):
    return lax.psum(v, "i", axis_index_groups=[[0, 1], [2, 3]])


SAME = lambda v: v  # noqa: E731
REFUSED = {
    "a block that is no whole number": (
        ValueError, r"x.*2.*\b5\b|\b5\b.*x.*2", lambda: mapped(SAME, jnp.arange(5.0)),
    ),
    "a part that is no whole number": (
        ValueError, "axis 0 is partitioned 2 times, but the dimension size is 5",
        lambda: placed(np.ones(5), "x"),
    ),
    "a mesh axis without a name": (
        ValueError, "Mesh axis names cannot be None",
        lambda: Mesh(np.array(minijax.devices()[:2]), ("x", None)),
    ),
    "no parts, and of which dtype": (
        ValueError, "no addressable shards, `dtype` must be provided",
        lambda: minijax.make_array_from_single_device_arrays((4,), AS_X, []),
    ),
    "parts of another dtype": (
        ValueError, "must match the dtype of the addressable shards. .* float32",
        lambda: minijax.make_array_from_single_device_arrays(
            (2,), minijax.devices()[0].committed.sharding, [jnp.arange(2)],
            dtype=np.float32,
        ),
    ),
    "a static argument of pmap by keyword": (
        ValueError, r"static_broadcasted_argnums=\(1,\) but was called with only 1",
        lambda: pmap(lambda v, n: v, static_broadcasted_argnums=1)(V, n=2),
    ),
    "an argument that is no whole number of parts": (
        ValueError, "axis 0 is partitioned 2 times",
        lambda: jit(SAME, in_shardings=NamedSharding(MESH, P("x")))(np.ones(5)),
    ),
    "a sum of bools that is dealt out": (
        TypeError, r"psum_scatter .*bool\[2\].*bools are not added.*\.astype\(int\)",
        lambda: mapped(lambda v: lax.psum_scatter(v > 0, "x", tiled=True), V),
    ),
    "the same by jit": (
        TypeError, r"psum_scatter .*bool\[2\].*bools are not added.*\.astype\(int\)",
        lambda: jit(mapped, static_argnums=0)(
            lambda v: lax.psum_scatter(v > 0, "x", tiled=True), V
        ),
    ),
    "the same by pmap": (
        TypeError, r"psum_scatter .*bool\[2\].*bools are not added.*\.astype\(int\)",
        lambda: pmap(lambda v: lax.psum_scatter(v, "i"), "i")(np.ones((2, 2), bool)),
    ),
    "more examples than devices": (
        ValueError, "9 examples.*2 devices.*jax_num_cpu_devices.*JAX_NUM_CPU_DEVICES=9",
        lambda: pmap(SAME)(np.ones((9, 2))),
    ),
    "sizes that differ": (
        ValueError, "different sizes: 2 .*1",
        lambda: pmap(lambda a, b: a)(np.ones((2, 2)), np.ones((1, 2))),
    ),
    "a size that is another": (
        ValueError, "axis_size 3.*2", lambda: pmap(SAME, axis_size=3)(np.ones((2, 2))),
    ),
    "an axis without a name": (
        NameError, "unbound axis name: i.*vmap.*pmap.*shard_map",
        lambda: lax.psum(V, "i"),
    ),
    "an axis that no mesh has": (
        ValueError, "'z'.*x", lambda: mapped(SAME, V, in_specs=P("z")),
    ),
    "a sharding along an axis that no mesh has": (
        ValueError, "z", lambda: placed(V, "z"),
    ),
    "a spec with too many axes": (
        ValueError, r"P\('x', None, None\)|rank|ndim|axes",
        lambda: mapped(SAME, V, in_specs=P("x", None, None)),
    ),
    "a result that varies, said to be the same": (
        ValueError, "out_specs.*x", lambda: mapped(SAME, V, out_specs=P()),
    ),
    "a mesh larger than the devices": (
        ValueError, "2 must be >=.*16.*jax_num_cpu_devices",
        lambda: make_mesh((16,), ("x",)),
    ),
    "a mesh with too few names": (
        ValueError, "axis_names", lambda: Mesh(np.array(minijax.devices()), ("x", "y")),
    ),
    "shardings that contradict an argument": (
        ValueError, "in_shardings|sharding",
        lambda: jit(SAME, in_shardings=NamedSharding(MESH, P()))(placed(V, "x")),
    ),
    "a map inside of its own mesh": (
        ValueError, "context mesh.*should match",
        lambda: mapped(partial(mapped, SAME), V),
    ),
    "no mesh": (
        ValueError, "set_mesh", lambda: mapped(SAME, V, mesh=None),
    ),
    "a collective that some devices do not reach": (
        ValueError, r"'cond'.*varies along \['x'\].*pmax", lambda: mapped(diverging, V),
    ),
    "groups that leave one out": (
        ValueError, "cover all indices exactly once",
        lambda: pmap(lambda v: lax.psum(v, "i", axis_index_groups=[[0]]), "i")(
            np.ones((2, 2))
        ),
    ),
    "groups in a checked map": (
        NotImplementedError, "check_vma=False",
        lambda: mapped(lambda v: lax.psum(v, "x", axis_index_groups=[[0], [1]]), V),
    ),
    "groups under vmap": (
        NotImplementedError, "axis_index_groups",
        lambda: minijax.vmap(grouped, axis_name="i")(V),
    ),
    "more devices, once there are some": (
        RuntimeError, "jax_num_cpu_devices",
        lambda: config.update("jax_num_cpu_devices", 5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", [*REFUSED])
def test_what_is_refused_is_refused_soon(what):
    kind, says, program = REFUSED[what]
    start = time.perf_counter()
    with pytest.raises(kind, match=f"(?s){says}"):
        program()
    assert time.perf_counter() - start < 5  # seconds, on a machine that others use
    np.testing.assert_allclose(mapped(lambda v: v + lax.psum(v, "x"), V)[0], 2)


def test_a_fault_arrives_and_frees_the_others_within_a_tenth_of_a_second():
    def fault(v):
        if v[0] == 2:
            raise ZeroDivisionError("a fault of the second device")
        return v

    f = shard_map(lambda v: lax.psum(pure_callback(fault, v, v), "x"), **MAP | {
        "out_specs": P()})  # fmt: skip
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        with pytest.raises(Exception, match="a fault of the second device"):
            f(V)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.1
    np.testing.assert_allclose(f(V + 10), [22, 24])


def test_a_mesh_of_the_context_is_looked_at_in_each_call():
    f = shard_map(lambda v: lax.psum(v, "x"), in_specs=P("x"), out_specs=P())
    one = Mesh(np.array(minijax.devices()[:1]), ("x",))
    for mesh, expected in ((MESH, [2, 4]), (one, [0, 1, 2, 3]), (MESH, [2, 4])):
        with minijax.set_mesh(mesh):
            np.testing.assert_allclose(f(V), expected)
            np.testing.assert_allclose(f(V), expected)


FORKED = """
import os, warnings
warnings.simplefilter("ignore")
import minijax, numpy as np
from minijax import P, lax, make_mesh, shard_map
f = shard_map(lambda v: lax.psum(v, "x"), mesh=make_mesh((2,), ("x",)),
              in_specs=P("x"), out_specs=P())
assert float(f(np.arange(4.0))[0]) == 2
child = os.fork()
worked = float(f(np.arange(4.0) + 1)[0]) == 4
if child:
    done = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(worked, done)
else:
    os._exit(0 if worked else 3)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_after_a_fork_both_processes_work():
    done = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=100,
        env=os.environ | {"JAX_NUM_CPU_DEVICES": "2"},
    )  # fmt: skip
    assert done.stdout.strip() == "True 0", done.stderr[-2000:]


def test_a_mesh_without_devices_is_that_of_the_arrays():
    abstract, other = MESH.abstract_mesh, make_mesh((2,), ("y",)).abstract_mesh
    array = placed(V, "x")
    found = mapped(lambda v: 2 * v, array, mesh=abstract)
    assert found.sharding == AS_X and found.tolist() == [0, 2, 4, 6]
    constrain = lax.with_sharding_constraint
    whole = constrain(array, NamedSharding(abstract, P(None)))
    assert whole.sharding == NamedSharding(MESH, P(None))
    along_y = {"in_specs": P("y"), "out_specs": P("y")}
    wanted = NamedSharding(abstract, P("x"))
    for error, words, call in (
        (ValueError, "Please pass `jax.Ar", lambda: mapped(SAME, V, mesh=abstract)),
        (
            ValueError,
            "does not match the mesh shape passed to shard_map",
            lambda: mapped(SAME, array, mesh=other, **along_y),
        ),
        (ValueError, "should be a `jax.Array`", lambda: constrain(np.ones(4), wanted)),
        (TypeError, "must be a `NamedSharding`", lambda: constrain(V, wanted)),
        (
            ValueError,
            "mesh shape of the target sharding",
            lambda: constrain(array, NamedSharding(other, P("y"))),
        ),
        (ValueError, "non-empty mesh", lambda: mapped(SAME, V, mesh=None)),
    ):
        with pytest.raises(error, match=words):
            call()


def test_the_name_of_an_axis_is_a_string_or_a_tuple():
    with pytest.raises(TypeError, match="must be a tuple or a str"):
        mapped(lambda v: lax.pcast(v[:1], {"x"}, to="varying"), V)
