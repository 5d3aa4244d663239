"""Many processes: without MPI on threads in their place, with MPI as they are."""

import json
import os
import shutil
import subprocess
import sys
import time
from functools import reduce
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import P, lax, make_jaxpr
from minijax.distributed import latency_hiding as calibration
from minijax.distributed import launchers
from minijax.distributed import launchers as watching
from minijax.distributed import processes as agreements
from minijax.distributed import processes as crossings
from minijax.distributed import processes as engines
from minijax.distributed import processes as ring_model
from minijax.distributed.processes import RemoteDevice
from minijax.sharding import Mesh, NamedSharding
from minijax.sharding.manual_axes import run_replicas
from minijax.sharding.replicas import ReplicaRun

ROOT = Path(__file__).parents[1]
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
needs_mpi = pytest.mark.skipif(
    MPIEXEC is None, reason=f"no MPI in this environment: {launchers.PIP}"
)


# ── without MPI ──────────────────────────────────────────────────────────────


class InThreads:
    """A communicator whose ranks are replicas, with the methods of mpi4py."""

    def __init__(self, rank, run):
        self.rank, self.size, self.run = rank, run.size, run
        self.meeting = run.meeting(rank, ("i",))

    def allgather(self, x):
        return self.meeting.exchange(self.rank, "x", x, lambda xs: [xs] * len(xs))

    def Allgather(self, x, y):
        y[:] = np.concatenate(self.allgather(x.copy()))

    def Alltoall(self, x, y):
        pieces = [np.split(z, self.size)[self.rank] for z in self.allgather(x.copy())]
        y[:] = np.concatenate(pieces)

    def Allreduce(self, x, y, operation):
        y[...] = reduce(operation, self.allgather(x.copy()))

    def Reduce_scatter_block(self, x, y, operation):
        y[...] = reduce(operation, self.allgather(x.copy()))[self.rank]

    def Irecv(self, y, source):
        def wait():
            sent = self.allgather(self.sent)
            y[:] = next(x for target, x in [sent[source]] if target == self.rank)

        return SimpleNamespace(Wait=wait)

    def Isend(self, x, target):
        self.sent = target, x.copy()
        return SimpleNamespace(Wait=lambda: None)


def on_threads(program, size=4):
    run = ReplicaRun({"i": size})
    plain = {np.add: np.add, np.maximum: np.maximum}
    return run_replicas(
        run, lambda r: program(engines.Communicator(InThreads(r, run), plain), r)
    )


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool", "bfloat16", "float16"])
@pytest.mark.parametrize(
    "name, params",
    [
        ("psum", {}),
        ("pmax", {}),
        ("pmin", {}),
        ("all_gather", {"axis_size": 4, "all_gather_dimension": 1, "tiled": False}),
        ("all_gather", {"axis_size": 4, "all_gather_dimension": 0, "tiled": True}),
        ("reduce_scatter", {"axis_size": 4, "scatter_dimension": 0, "tiled": False}),
        ("reduce_scatter", {"axis_size": 4, "scatter_dimension": 1, "tiled": True}),
        (
            "all_to_all",
            {"axis_size": 4, "split_axis": 0, "concat_axis": 1, "tiled": False},
        ),
        (
            "all_to_all",
            {"axis_size": 4, "split_axis": 1, "concat_axis": 0, "tiled": True},
        ),
        ("ppermute", {"perm": ((0, 1), (1, 2), (2, 3), (3, 0))}),
    ],
)
def test_each_collective_is_that_of_replicas(name, params, dtype):
    primitives = {primitive.name: primitive for primitive in engines.MPI_COLLECTIVES}
    primitive = primitives[name]
    numbers = np.random.default_rng(0).integers(0, 5, (4, 4, 4))
    values = np.asarray(jnp.asarray(numbers).astype(dtype))
    if dtype == "bool" and name in ("psum", "reduce_scatter"):
        values = values.astype("int32")

    def by_engine(engine, rank):
        return engines.MPI_COLLECTIVES[primitive](engine, values[rank], **params)

    def by_replicas(rank):
        return primitive.bind(jnp.asarray(values[rank]), axis_name=("i",), **params)

    found = on_threads(by_engine)
    expected = run_replicas(ReplicaRun({"i": 4}), by_replicas)
    for mine, theirs in zip(found, expected):
        assert mine.dtype == theirs.dtype and mine.shape == theirs.shape
        assert (mine == np.asarray(theirs)).all()


def test_a_maximum_of_nan_is_nan():
    values = np.float32([1, np.nan, 3, 2])
    found = on_threads(lambda e, r: engines.allreduce(e, values[r : r + 1], np.maximum))
    assert np.isnan(found).all()


def test_launchers():
    find = launchers.detect_launcher
    assert find({"PATH": "/bin"}) is None
    assert find({"PMI_SIZE": "4", "PMI_RANK": "3"})[2:] == (4, 3)
    assert find({"PMIX_RANK": "1"})[2:] == (None, 1)
    both = {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "PMIX_RANK": "1"}
    assert find(both).name == "Open MPI"
    slurm = {"SLURM_NTASKS": "8", "SLURM_PROCID": "0"}
    assert find(slurm) is None  # a batch script, not a step
    assert find(slurm | {"SLURM_STEP_ID": "0"}).size == 8
    ours = find({"PMI_SIZE": "4", "PMI_RANK": "0"})
    launchers.check_agreement(ours, 4, "MPICH")
    with pytest.raises(RuntimeError, match="MPICH has started 4.*'Open MPI 5'.*sees 1"):
        launchers.check_agreement(ours, 1, "Open MPI 5")
    with pytest.raises(RuntimeError, match="more than 1 processes"):
        launchers.check_agreement(find({"PMIX_RANK": "1"}), 1, "MPICH")


def test_without_mpi_there_is_a_line_for_pip(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    launcher = launchers.detect_launcher({"PMI_SIZE": "2", "PMI_RANK": "0"})
    with pytest.raises(RuntimeError, match="pip install .*mpi4py.*mpich"):
        launchers.load_mpi(launcher)


def test_a_process_without_a_launcher_is_alone(monkeypatch):
    for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_STEP_ID"):
        monkeypatch.delenv(name, raising=False)
    distributed = minijax.distributed
    with pytest.raises(RuntimeError, match="initialize was not called"):
        distributed.shutdown()
    with pytest.raises(ValueError, match="process 0 of 1.*mpiexec -n 4"):
        distributed.initialize("localhost:1234", 2, 0)
    distributed.initialize(num_processes=1, process_id=0)
    try:
        assert distributed.is_initialized()
        assert (minijax.process_index(), minijax.process_count()) == (0, 1)
        with pytest.raises(RuntimeError, match="only be called once"):
            distributed.initialize()
    finally:
        distributed.shutdown()
    assert not distributed.is_initialized()


def test_arrays_of_which_a_part_is_elsewhere():
    mesh = Mesh([minijax.devices()[0], RemoteDevice("cpu", 1)], "i")
    assert mesh.is_multi_process and mesh.local_devices == minijax.devices()[:1]
    assert mesh.local_mesh.size == 1
    x = minijax.device_put(np.arange(4.0), NamedSharding(mesh, P("i")))
    assert not x.is_fully_addressable and len(x.addressable_shards) == 1
    assert [shard.data is None for shard in x.global_shards] == [False, True]
    assert repr(x) == str(x) == "Array(shape=(4,), dtype=float32)"
    with pytest.raises(RuntimeError, match="spans non-addressable.*process_allgather"):
        np.asarray(x)
    with pytest.raises(RuntimeError, match="initialize"):
        (x + 1).block_until_ready()
    copies = minijax.device_put(np.arange(4.0), NamedSharding(mesh, P()))
    assert (np.asarray(copies) == np.arange(4.0)).all()
    rows = NamedSharding(mesh, P("i"))
    local = minijax.make_array_from_process_local_data(rows, np.ones((2, 3)))
    assert local.shape == (4, 3)
    whole = np.arange(8.0).reshape(4, 2)
    both = {"a": whole, "b": [whole]}
    both = minijax.make_array_from_process_local_data({"a": rows, "b": rows}, both)
    assert all(x.sharding == rows for x in (both["a"], *both["b"]))
    given = minijax.make_array_from_process_local_data(rows, whole, (4, 2))
    assert (given.addressable_data(0) == whole[:2]).all()
    with pytest.raises(ValueError, match=r"local_data of shape \(2, 3\).*\(5, 3\)"):
        minijax.make_array_from_process_local_data(rows, np.ones((2, 3)), (5, 3))
    elsewhere = Mesh([RemoteDevice("cpu", 1)], "i")
    with pytest.raises(RuntimeError, match="None of the devices"):
        np.asarray(minijax.device_put(1.0, NamedSharding(elsewhere, P())))


def test_texts_that_differ_are_refused_everywhere():
    def program(engine, rank):
        agreements.check_ranks_agree(engine, "the same")
        try:
            agreements.check_ranks_agree(engine, f"program {rank == 2}")
        except ValueError as error:
            return str(error)

    for message in on_threads(program):
        assert "rank 0, 1, 3:\nprogram False" in message
        assert "rank 2:\nprogram True" in message


def test_the_text_of_a_program_has_no_addresses():
    @minijax.custom_jvp
    def f(x):
        return x * 2

    f.defjvp(lambda primals, tangents: (f(*primals), tangents[0]))
    mesh = Mesh(minijax.devices()[:1], "i")
    texts = [
        agreements.mesh_program_text((make_jaxpr(f)(1.0), i), mesh) for i in (0, 0, 1)
    ]
    assert texts[0] == texts[1] != texts[2]
    assert "0x7" not in texts[0] and "custom_jvp" in texts[0]


def test_the_watchdog_says_who_is_missing(capsys):
    ended, sent, heard = [], [], {}
    notes = SimpleNamespace(send=sent.append, received=lambda: heard)
    watch = watching.Watchdog(1, 4, lambda: 60, lambda: ended.append(True), notes)
    assert watch("psum", lambda x: x + 1, 1) == 2 and watch.waiting is None
    watch.waiting, watch.count = (0.0, "psum"), 5
    watch.look(10.0)
    assert not sent and not capsys.readouterr().err
    watch.look(21.0)
    watch.look(22.0)
    assert sent == [(5, "psum")]
    assert capsys.readouterr().err.count("psum has waited for 21 s") == 1
    heard.update({0: (5, "psum"), 2: (4, "a comparison of programs")})
    watch.look(61.0)
    said = capsys.readouterr().err
    assert ended and "2 of 4 ranks arrived; ranks 2, 3 missing" in said
    assert "rank 2 waits for a comparison of programs." in said
    assert "rank 0 waits" not in said


def test_a_program_that_is_repeated_is_not_compared_again():
    def program(engine, rank):
        asked, watch = [], lambda label, action, *args: action(*args)
        world = SimpleNamespace(latest={}, watchdog=watch)
        world.engine = lambda *args: asked.append(args) or engine
        for text in ("a", "a", "b", "a", "a"):
            crossings.check_same_program(world, (0, 1), text)
        try:
            crossings.check_same_program(world, (0, 1), f"{rank}")
        except ValueError:
            return len(asked), world.latest[0, 1], asked[0]

    assert on_threads(program, 2) == [(4, "a", ((0, 1), "programs"))] * 2


def test_the_model_counts_bytes_and_rounds():
    def step(x):
        y = lax.scan(lambda c, r: (c + lax.psum(r, "i"), None), x[0], x)[0]
        return lax.all_gather(jnp.sin(y), "i"), lax.pmax(x, "i")

    jaxpr = make_jaxpr(step, axis_env=[("i", 4)])(np.zeros((5, 8), "f4")).jaxpr
    rows = ring_model.collectives_of(jaxpr)
    found = [(str(name), size, times) for name, size, times in rows]
    assert found == [("psum", 32, 5), ("all_gather", 32, 1), ("pmax", 160, 1)]
    line = ring_model.LinkModel(1.0, 0.5)
    seconds = 5 * 6 * (1 + 8 * 0.5) + 3 * (1 + 32 * 0.5) + 6 * (1 + 40 * 0.5)
    assert ring_model.predict(jaxpr, 4, line, compute=2.0) == 2 + seconds


def test_a_line_is_found_from_its_points(monkeypatch):
    def exact(engine, size, times=30):
        return 3e-6 + 2e-9 * size

    monkeypatch.setattr(calibration, "shift_seconds", exact)
    assert np.allclose(calibration.calibrate(None), (3e-6, 2e-9))


# ── with MPI ─────────────────────────────────────────────────────────────────


def launched(case, processes, **variables):
    """Run a case of `tests.rank_programs`; return what it did, and its seconds."""
    command = [sys.executable, "-m", "tests.rank_programs", case]
    if processes > 1:
        command = [MPIEXEC, "-n", str(processes), *command]
    start = time.monotonic()
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | variables, timeout=60,
        capture_output=True, text=True,
    )  # fmt: skip
    return done, time.monotonic() - start


def result(case, processes, **variables):
    done, _ = launched(case, processes, **variables)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def assert_alike(mine, theirs, where=""):
    """Assert that two trees of numbers are the same, to rounding."""
    assert type(mine) is type(theirs), where
    if isinstance(mine, dict):
        assert mine.keys() == theirs.keys(), where
        mine, theirs = ([tree[key] for key in tree] for tree in (mine, theirs))
    if isinstance(mine, list):
        assert len(mine) == len(theirs), where
        for i, pair in enumerate(zip(mine, theirs)):
            assert_alike(*pair, f"{where}/{i}")
    elif isinstance(mine, float):
        assert np.isclose(mine, theirs, rtol=1e-4, atol=1e-5, equal_nan=True), where
    else:
        assert mine == theirs, where


@needs_mpi
@pytest.mark.parametrize(
    "case",
    ["collectives", "dtypes", "sharded", "training", "parts", "mapped", "overlapped"],
)
def test_four_processes_are_four_devices(case):
    alone = result(case, 1, JAX_NUM_CPU_DEVICES="4")
    assert_alike(result(case, 4), alone)


@needs_mpi
def test_training_is_the_same_on_one_and_on_eight_devices():
    four = result("training", 4)
    eight = result("training", 1, JAX_NUM_CPU_DEVICES="8")
    alone = result("training", 1, JAX_NUM_CPU_DEVICES="1")
    assert_alike({name: four[name] for name in alone}, alone)
    assert_alike(four, eight)


@needs_mpi
def test_programs_that_differ():
    assert result("differing", 2) == [True, 4.0]


@needs_mpi
def test_a_program_that_is_repeated_while_another_begins():
    variables = {"MINIJAX_COLLECTIVE_TIMEOUT": "1"}
    done, seconds = launched("strangers", 2, **variables)
    assert done.returncode != 0 and seconds < 20
    assert "rank 0 waits for a comparison of programs." in done.stderr


@needs_mpi
def test_initialize_and_shutdown():
    told, before, after = result("twice", 2)
    assert "once" in told and before and not after


@needs_mpi
@pytest.mark.parametrize(
    "case, says",
    [
        ("raises", "ValueError: a fault in rank 1"),
        ("dies", ""),
        ("absent", "1 of 2 ranks arrived; rank 1 missing"),
    ],
)
def test_a_failure_ends_all_processes(case, says):
    healthy = launched("twice", 2)[1]
    done, seconds = launched(case, 2)
    assert done.returncode != 0 and says in done.stderr + done.stdout
    assert seconds < healthy + 3


@needs_mpi
def test_several_devices_in_one_of_several_processes():
    done, _ = launched("twice", 2, JAX_NUM_CPU_DEVICES="2")
    assert done.returncode != 0
    assert "asked for 2 (jax_num_cpu_devices)" in done.stderr
