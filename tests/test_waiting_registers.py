"""What fills tables for arrays on many devices waits until there is a mesh."""

import json
import subprocess
import sys

import pytest

HEAD = """
import json, os, pickle, sys, threading
import numpy as np
import minijax as jax
import minijax.numpy as jnp
jax.config.update("jax_num_cpu_devices", 4)
MESHES = "minijax.sharding.named_sharding"
traced = []

@jax.jit
def double(x):
    traced.append(x)
    return 2 * x

def sharded(n=8):
    mesh = jax.make_mesh((4,), ("x",))
    at = jax.sharding.NamedSharding(mesh, jax.P("x"))
    return jax.device_put(np.arange(n, dtype="float32"), at)

def all_registered():
    from minijax._public import WAITING
    return WAITING.keys() <= sys.modules.keys()

double(jnp.ones(3))
assert MESHES not in sys.modules, "the first program needs no mesh"
"""


def run(code, *args):
    """Return what a new process prints, as JSON, after a program without a mesh."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + code, *args],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


SPREAD = """
assert all_registered()
print(json.dumps([str(y.sharding.spec), y.tolist()]))
"""
TWICE = ["P('x',)", [2.0 * i for i in range(8)]]

FIRST = {
    "make_mesh": "y = double(sharded())",
    "Mesh": """
from minijax.sharding import Mesh, NamedSharding, PartitionSpec as P
at = NamedSharding(Mesh(np.array(jax.devices()), "x"), P("x"))
y = double(jax.device_put(np.arange(8, dtype="float32"), at))
""",
    "shard_map": """
mesh = jax.make_mesh((4,), ("x",))
@jax.shard_map(mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))
def block(x):
    return x + jax.lax.psum(x, "x") * 0 + x
y = jax.jit(block)(jnp.arange(8.))
""",
    "pmap": """
y = jax.pmap(lambda x: 2 * x)(np.arange(8, dtype="float32").reshape(4, 2))
assert len(y.sharding.device_set) == 4
y = double(sharded())
""",
    "threads": """
found = []
start = threading.Barrier(8)
def work():
    start.wait()
    found.append(double(sharded()))
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
assert len(found) == 8 and len({tuple(x.tolist()) for x in found}) == 1
y = found[3]
""",
}


@pytest.mark.parametrize("way", FIRST)
def test_the_first_mesh_wakes_what_waits(way):
    assert run(FIRST[way] + SPREAD) == TWICE


@pytest.mark.parametrize("what", ["array", "sharding", "mesh"])
def test_a_mesh_out_of_a_pickle_wakes_what_waits(tmp_path, what):
    path = str(tmp_path / "kept")
    run("""
x = sharded()
kept = {"array": x, "sharding": x.sharding, "mesh": x.sharding.mesh}[sys.argv[2]]
open(sys.argv[1], "wb").write(pickle.dumps(kept))
print(1)
""", path, what)  # fmt: skip
    found = run("""
put, kept = jax.device_put, pickle.loads(open(sys.argv[1], "rb").read())
if sys.argv[2] == "mesh":
    kept = jax.NamedSharding(kept, jax.P("x"))
numbers = np.arange(8, dtype="float32")
x = kept if sys.argv[2] == "array" else put(numbers, kept)
y = double(x) if len(x.sharding.device_set) == 4 else double(sharded())
""" + SPREAD, path, what)  # fmt: skip
    assert found == TWICE


def test_programs_made_before_are_not_traced_again():
    found = run("""
text = double.lower(jnp.ones(3)).as_text()
before = len(traced)
sharded()
double(jnp.ones(3))
print(json.dumps([len(traced) - before, double.lower(jnp.ones(3)).as_text() == text]))
""")
    assert found == [0, True]


def test_switches_of_what_waits_are_known():
    found = run("""
jax.config.update("minijax_exchange", False)
assert jax.config.minijax_exchange is False and jax.config.minijax_overlap is True
try:
    jax.config.update("minijax_exchanges", False)
except AttributeError as error:
    print(json.dumps(str(error)))
""")
    assert found.endswith("Did you mean minijax_exchange?")


def test_a_forked_process_wakes_what_waits():
    if sys.platform == "win32":
        pytest.skip("there is no fork")
    found = run("""
read, write = os.pipe()
if not os.fork():
    os.write(write, json.dumps(double(sharded()).tolist()).encode())
    os._exit(0)
print(os.read(read, 1000).decode())
""")
    assert found == TWICE[1]


def test_types_tell_their_sharding_before_there_is_a_mesh():
    found = run("""
print(json.dumps([str(jax.typeof(x).sharding.spec) for x in (jnp.ones((2, 3)), 1.0)]))
""")
    assert found == ["P(None, None)", "P()"]


def test_a_program_sets_before_the_package():
    """As in Colab: a cell defines a tracer's `sharding`; then comes a late module."""
    program = """
from minijax.core import tracer_methods

tracer_methods["sharding"] = mine = property(lambda x: "mine")
import minijax, minijax.numpy as jnp
from minijax.lax import reduce_sum

assert minijax.jit(lambda x: reduce_sum(x, (0,)))(jnp.ones(3)) == 3
assert tracer_methods["sharding"] is mine
assert minijax.make_jaxpr(lambda x: (print(x.sharding), x)[1])(1.0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    assert (done.stdout, done.returncode) == ("mine\n", 0), done.stderr
