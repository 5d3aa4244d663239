"""Machine code on disk: found again, never trusted blindly, never in the way."""

import os
import signal
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest

from minijax.arrays.dtypes import config
from minijax.dispatch import compilation_cache as object_cache
from minijax.dispatch.compilation_cache import (
    CODE_OFFSET,
    CODE_SUFFIX,
    evict_lru,
    object_cache_key,
    read_object,
    write_object,
)
from minijax.dispatch.private_files import Folder, user_id
from minijax.llvm.compiler import Library, object_code
from tests.mutants_cache import forged_entries, swapped_entries, unbound_entries
from tests.test_llvm_compiler import TEXT, call

posix = pytest.mark.skipif(user_id() is None, reason="folders of POSIX")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(object_cache, "_said", set())
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
    return sorted(folder.glob("*" + CODE_SUFFIX))


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
    def full(*args, **names):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert result() == 2 and not list(folder.iterdir())


def test_a_disk_for_reading_only(made, folder, monkeypatch):
    def refused(*args, **names):
        raise OSError(30, "Read-only file system")

    result()
    for name in ("utime", "replace", "mkdir", "unlink"):
        monkeypatch.setattr(os, name, refused)
    assert result() == 2 and len(made) == 1


def key(start):
    """A key that begins like this."""
    return f"{start}".ljust(64, "e")


def keep(folder, start, age):
    """Write an entry of 1000 bytes that was last used so long after 1970."""
    write_object(str(folder), key(start), b"x" * (1000 - CODE_OFFSET))
    os.utime(folder / (key(start) + CODE_SUFFIX), (age, age))


def test_the_oldest_go(folder):
    for k in range(6):
        keep(folder, k, age=k)
    assert read_object(str(folder), key(0)) == b"x" * (1000 - CODE_OFFSET)
    with Folder(str(folder)) as own:
        evict_lru(own, -1)
        assert len(files(folder)) == 6
        evict_lru(own, 3000)
        assert [path.name[0] for path in files(folder)] == ["0", "4", "5"]
        evict_lru(own, 0)
    assert not files(folder)


def test_one_name_in_256_makes_room(folder):
    with config.override("jax_compilation_cache_max_size", 3000):
        for k in range(6):
            keep(folder, f"1{k}", age=k)
        assert len(files(folder)) == 6
        keep(folder, "00", age=9)
    assert [path.name[:2] for path in files(folder)] == ["00", "14", "15"]


def test_only_what_the_cache_wrote_goes(folder):
    keep(folder, 1, age=1)
    draft = key(2) + CODE_SUFFIX + "." + "0" * 16
    names = [
        "thesis.code", "thesis" + CODE_SUFFIX, key(1) + ".code",
        key(1)[1:] + CODE_SUFFIX, "x" * 64 + CODE_SUFFIX, key(3) + CODE_SUFFIX,
        key(1) + CODE_SUFFIX + "~", "thesis.draft",
        "tmpabc.draft", key(2) + CODE_SUFFIX + ".draft", draft + "0.draft",
    ]  # fmt: skip
    for name in names:
        (folder / name).write_text("not of the cache")
        os.utime(folder / name, (0, 0))
    (folder / (key(4) + CODE_SUFFIX)).mkdir()
    old, new = folder / (draft + ".draft"), folder / (draft[:-1] + "1.draft")
    old.touch(), new.touch()
    os.utime(old, (0, 0))
    with Folder(str(folder)) as own:
        evict_lru(own, 0)
    left = {path.name for path in folder.iterdir()}
    assert left == {*names, key(4) + CODE_SUFFIX, new.name}


def test_changed_places_are_found(made, folder):
    assert swapped_entries(folder) == [] and len(made) == 6
    with unbound_entries():
        assert len(swapped_entries(folder.parent / "other")) == 3


def test_what_others_sign_is_not_read(folder):
    write_object(str(folder), key(1), b"code")
    assert forged_entries(folder) == []
    with unbound_entries():
        assert forged_entries(folder) == [b"no machine code at all"]


@pytest.mark.parametrize(
    "cut", [0, 1, 10, CODE_OFFSET - 1, CODE_OFFSET, CODE_OFFSET + 1, -1]
)
def test_parts_of_a_file_are_not_read(folder, cut):
    write_object(str(folder), key(1), b"code")
    path = folder / (key(1) + CODE_SUFFIX)
    path.write_bytes(path.read_bytes()[:cut])
    assert read_object(str(folder), key(1)) is None


def test_what_has_another_secret_is_made_anew(made, folder, tmp_path, monkeypatch):
    assert result() == 2
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another"))
    assert result() == result() == 2
    assert len(made) == 2 and len(files(folder)) == 1


@pytest.fixture
def patience():
    """Let a test fail that would wait for ever."""

    def lost(*args):
        pytest.fail("waits for ever")

    before = signal.signal(signal.SIGALRM, lost)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@posix
def test_only_files_are_read(made, folder, patience):
    result()
    [path] = files(folder)
    elsewhere = folder / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert result() == 2 and len(made) == 2 and path.is_symlink()
    path.unlink()
    os.mkfifo(path)  # a reader of this would wait for ever, and so would a writer
    assert result() == 2 and len(made) == 3 and path.is_fifo()
    with Folder(str(folder)) as own:
        evict_lru(own, 0)
    assert path.is_fifo()


@posix
def test_files_of_other_users_are_not_read(made, folder, monkeypatch):
    result()
    [path] = files(folder)
    about = os.fstat

    def of_another(handle):
        found = about(handle)
        return os.stat_result([*found[:4], user_id() + 1, *found[5:]])

    def only_this(handle):
        same = os.path.samestat(about(handle), path.stat())
        return (of_another if same else about)(handle)

    monkeypatch.setattr(os, "fstat", only_this)
    assert read_object(str(folder), path.stem) is None


@posix
def test_folders_that_others_can_write(made, folder, tmp_path):
    above = tmp_path / "shared"
    (above / "below").mkdir(parents=True)
    above.chmod(0o777)
    with config.override("jax_compilation_cache_dir", str(above / "below")):
        with pytest.warns(UserWarning, match="shared can be written.*0777.*chmod") as w:
            assert result() == 2
        assert len(w) == 1 and "JAX_COMPILATION_CACHE_DIR" in str(w[0].message)
        assert result() == 2  # and nothing is said
        assert len(made) == 2 and not list((above / "below").iterdir())
        above.chmod(0o1777)  # as the folder for temporary files: each has their own
        assert result() == result() == 2 and len(made) == 3
    link = tmp_path / "link"
    link.symlink_to(above)
    above.chmod(0o757)
    told = pytest.warns(UserWarning, match="shared can be written.*0757")
    with config.override("jax_compilation_cache_dir", str(link)), told:
        assert result() == 2


@posix
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_secret_that_others_can_read(made, folder, tmp_path, mode):
    assert result() == 2
    (tmp_path / "state" / "minijax" / "secret").chmod(mode)
    object_cache.read_secret.cache_clear()
    with pytest.warns(UserWarning, match="secret.*others can read.*XDG_STATE_HOME"):
        assert result() == 2
    assert result() == 2 and len(made) == 3


@posix
def test_a_folder_of_secrets_that_others_can_write(made, folder, tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o777)
    with pytest.warns(UserWarning, match="state can be written.*XDG_STATE_HOME"):
        assert result() == 2
    assert result() == 2 and len(made) == 2 and not files(folder)


@pytest.mark.parametrize("state", ["file", "file/below"])
def test_no_place_for_a_secret(made, folder, tmp_path, monkeypatch, state):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / state))
    with pytest.warns(UserWarning, match="not kept on disk.*XDG_STATE_HOME"):
        assert result() == 2
    assert result() == 2 and len(made) == 2 and not files(folder)


def test_no_home(monkeypatch, folder):
    for name in ("XDG_STATE_HOME", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert object_cache.default_folder() is None
    with pytest.warns(UserWarning, match="no home folder"):
        assert result() == 2
    assert result() == 2
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # the standard: to be ignored
    assert object_cache.default_folder() is None


def test_the_key_holds_all_that_matters(monkeypatch):
    first, other = Library(TEXT.replace("NUMBER", "1.0")), Library(
        TEXT.replace("NUMBER", "2.0")
    )
    keys = {object_cache_key(first), object_cache_key(other)}
    monkeypatch.setattr(Library, "recipe", lambda self, binding: "another processor")
    keys.add(object_cache_key(first))
    monkeypatch.setattr("llvmlite.__version__", "0")
    keys.add(object_cache_key(first))
    monkeypatch.setattr("minijax.__version__", "0")
    keys.add(object_cache_key(first))
    assert len(keys) == 5 and object_cache_key(first) == object_cache_key(first)


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
from minijax import jit
from minijax.dispatch import compilation_cache as object_cache
made = []
code = object_cache.object_code
object_cache.object_code = lambda library: made.append(1) or code(library)
f = jit(lambda x: (jnp.tanh(x) @ x, jnp.exp(x).sum(0)), backend="cpu")
x = jnp.linspace(0, 1, 400).reshape(20, 20)
for _ in range(3):
    y, z = f(x)
print(len(made), np.asarray(y).tobytes().hex(), np.asarray(z).tobytes().hex())
"""


AT_ONCE = """
import ctypes, os
from minijax.dispatch import compilation_cache as object_cache
from minijax.llvm.compiler import Library

def numbers():
    for k in range(3):
        text = f"define i64 @seven() {{ ret i64 {70 + k} }}"
        library = Library(text)
        address = library.engine.get_function_address("seven")
        yield ctypes.CFUNCTYPE(ctypes.c_int64)(address)()

reading, writing = os.pipe()
children = []
for _ in range(8):
    children.append(os.fork())
    if not children[-1]:
        os.close(writing)
        os.read(reading, 1)  # until the last one is there
        said = [*map(str, numbers()), object_cache.secret().hex()]
        os.write(1, " ".join(said).encode() + b"\\n")  # in one piece
        os._exit(0)
os.close(writing)
print(*[os.waitpid(child, 0)[1] for child in children])
"""


def child(program, folder):
    """Run a program in another process, with this cache; return the words it says."""
    done = subprocess.run(
        [sys.executable, "-c", program], text=True, capture_output=True,
        env=os.environ | {
            "JAX_COMPILATION_CACHE_DIR": str(folder),
            "JAX_ENABLE_COMPILATION_CACHE": "1",
        },
        timeout=300, check=True,
    )  # fmt: skip
    return done.stdout.split()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes of POSIX")
def test_eight_processes_agree_on_a_secret(folder):
    words = child(AT_ONCE, folder)
    rows = {tuple(words[k : k + 4]) for k in range(0, 32, 4)}
    assert words[32:] == ["0"] * 8
    [(*numbers, agreed)] = rows
    assert numbers == ["70", "71", "72"] and agreed == object_cache.secret().hex()
    assert os.listdir(folder.parent / "state" / "minijax") == ["secret"]
    assert len(files(folder)) == len(list(folder.iterdir())) == 3


def test_another_process_finds_all(folder):
    runs = [child(PROGRAM, folder) for _ in range(2)]
    assert int(runs[0][0]) > 0 == int(runs[1][0])
    assert runs[0][1:] == runs[1][1:]


def test_sizes_come_from_the_environment():
    assert config.jax_compilation_cache_max_size == int(
        os.environ.get("JAX_COMPILATION_CACHE_MAX_SIZE", 2**28)
    )
    assert np.iinfo(np.int64).max > config.jax_compilation_cache_max_size
