"""Machine code on disk: found again, never trusted blindly, never in the way."""

import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from minijax import object_cache
from minijax.machine import Library, object_code
from minijax.object_cache import CODE, key_of, make_room, read, write
from minijax.settings import config
from tests.test_machine import TEXT, call


@pytest.fixture(autouse=True)
def folder(tmp_path):
    names = ("jax_compilation_cache_dir", "jax_enable_compilation_cache")
    before = {name: getattr(config, name) for name in names}
    for name, value in zip(names, (str(tmp_path / "cache"), True)):
        config.update(name, value)
    yield tmp_path / "cache"
    for name, value in before.items():
        config.update(name, value)


@pytest.fixture
def made(monkeypatch):
    """A list that grows with each compilation."""
    found = []

    def counted(library):
        found.append(library)
        return object_code(library)

    monkeypatch.setattr(object_cache, "object_code", counted)
    return found


def result(number=1.0):
    return call(Library(TEXT.replace("NUMBER", f"{number}")).function("add", 2))


def files(folder):
    return sorted(folder.glob("*" + CODE))


def test_the_second_time_nothing_is_made(made, folder):
    assert [result(), result(), result(2.0), result()] == [2, 2, 3, 2]
    assert len(made) == 2 and len(files(folder)) == 2
    if os.name == "posix":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("damage", [b"", b"short", None])
def test_damaged_files_are_replaced(made, folder, damage):
    result()
    [path] = files(folder)
    content = path.read_bytes()
    path.write_bytes(content[:-1] + b"!" if damage is None else damage)
    assert result() == 2 and len(made) == 2
    assert path.read_bytes() == content
    assert result() == 2 and len(made) == 2


def test_a_folder_in_place_of_a_file(made, folder):
    result()
    [path] = files(folder)
    path.unlink()
    path.mkdir()
    assert result() == 2 and len(made) == 2


def test_no_folder(made, folder, tmp_path):
    (tmp_path / "file").write_text("no folder")
    for place in (tmp_path / "file", tmp_path / "file" / "below", "\0", None, ""):
        if place == "\0":
            continue
        with config.override("jax_compilation_cache_dir", place):
            assert result() == 2
    with config.override("jax_enable_compilation_cache", False):
        assert result() == 2
    assert len(made) == 5 and not folder.exists()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write")
def test_a_folder_that_may_not_be_written(made, folder):
    folder.mkdir()
    folder.chmod(0o500)
    assert result() == result() == 2 and len(made) == 2


def test_a_disk_that_is_full(made, folder, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert result() == 2 and not list(folder.iterdir())


def test_the_oldest_go(folder):
    for k in range(6):
        write(folder / f"{k}{CODE}", b"x" * 968)
        os.utime(folder / f"{k}{CODE}", (k, k))
    assert read(folder / f"0{CODE}") == b"x" * 968  # used: now the youngest
    make_room(folder, -1)
    assert len(files(folder)) == 6
    make_room(folder, 3000)
    assert [path.name[0] for path in files(folder)] == ["0", "4", "5"]
    make_room(folder, 0)
    assert not files(folder)


def test_one_name_in_256_makes_room(folder):
    size = config.jax_compilation_cache_max_size
    config.update("jax_compilation_cache_max_size", 3000)
    try:
        for k in range(6):
            write(folder / f"1{k}{CODE}", b"x" * 968)
            os.utime(folder / f"1{k}{CODE}", (k, k))
        assert len(files(folder)) == 6
        write(folder / f"00{CODE}", b"x" * 968)
    finally:
        config.update("jax_compilation_cache_max_size", size)
    assert [path.name[:2] for path in files(folder)] == ["00", "14", "15"]


def test_the_key_holds_all_that_matters(monkeypatch):
    first, other = Library(TEXT.replace("NUMBER", "1.0")), Library(
        TEXT.replace("NUMBER", "2.0")
    )
    keys = {key_of(first), key_of(other)}
    monkeypatch.setattr(Library, "recipe", lambda self, binding: "another processor")
    keys.add(key_of(first))
    monkeypatch.setattr("llvmlite.__version__", "0")
    keys.add(key_of(first))
    monkeypatch.setattr("minijax.__version__", "0")
    keys.add(key_of(first))
    assert len(keys) == 5 and key_of(first) == key_of(first)


def test_many_threads_and_one_key(folder):
    found: list = []
    work = [lambda: found.append(result())] * 8
    threads = [threading.Thread(target=run) for run in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [2] * 8 and len(files(folder)) == 1


PROGRAM = """
import numpy as np, sys
import minijax.numpy as jnp
from minijax import jit, object_cache
made = []
code = object_cache.object_code
object_cache.object_code = lambda library: made.append(1) or code(library)
f = jit(lambda x: (jnp.tanh(x) @ x, jnp.exp(x).sum(0)), backend="cpu")
x = jnp.linspace(0, 1, 400).reshape(20, 20)
for _ in range(3):
    y, z = f(x)
print(len(made), np.asarray(y).tobytes().hex(), np.asarray(z).tobytes().hex())
"""


def test_another_process_finds_all(folder):
    runs = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], text=True, capture_output=True,
            env=os.environ | {
                "JAX_COMPILATION_CACHE_DIR": str(folder),
                "JAX_ENABLE_COMPILATION_CACHE": "1",
            },
            timeout=300, check=True,
        )  # fmt: skip
        runs.append(done.stdout.split())
    assert int(runs[0][0]) > 0 == int(runs[1][0])
    assert runs[0][1:] == runs[1][1:]


def test_sizes_come_from_the_environment():
    assert config.jax_compilation_cache_max_size == int(
        os.environ.get("JAX_COMPILATION_CACHE_MAX_SIZE", 2**28)
    )
    assert np.iinfo(np.int64).max > config.jax_compilation_cache_max_size
