"""Files that are damaged, forged, written by many at once or by a process that dies.

python -m tests.kept_files --seed 0 --count 1000    # damaged checkpoints, cache entries
python -m tests.kept_files --seed 0 --count 0 --rounds 200    # many writers and readers

A checkpoint comes back as it was, or `restore` raises a `ValueError` with the path of
the file; an entry of the cache of machine code comes back, or nobody meets it.
"""

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax.dispatch import compilation_cache as object_cache
from minijax.training import checkpoints
from tests.commands import options_of, reported

DEEP = 10_000
KEY = "0f" * 32
NUMBERS = [0, 1, -1, -4, 2**31, 2**63, 2**70, 10**400, 1.5, True, None, "4", [], {}]


def drawn_tree(draw):
    """Return a tree of a few leaves of all kinds."""

    def leaf():
        shape = tuple(draw.choices(range(4), k=draw.randrange(3)))
        numbers = np.array([draw.randrange(100) for _ in range(math.prod(shape))])
        return draw.choice([
            lambda: jnp.asarray(numbers.reshape(shape), draw.choice(["f", "i", "h"])),
            lambda: numbers.reshape(shape).astype(draw.choice(["f8", ">i4", "?"])),
            lambda: minijax.random.key(draw.randrange(100)),
            lambda: draw.choice([draw.randrange(10**9), draw.random(), 1j, True]),
            lambda: np.float16(draw.random()),
        ])()  # fmt: skip

    names = [f"leaf {k}" for k in range(draw.randrange(1, 5))]
    return [{name: leaf() for name in names}, leaf()]


def described(tree):
    """Return the types and the bytes of all leaves."""

    def one(x):
        key = jnp.issubdtype(getattr(x, "dtype", float), minijax.dtypes.prng_key)
        numbers = np.asarray(minijax.random.key_data(x) if key else x)
        numbers = numbers.astype(numbers.dtype.newbyteorder("<"))
        return type(x).__name__, str(numbers.dtype), numbers.shape, numbers.tobytes()

    return [one(x) for x in minijax.tree.leaves(tree)]


# Damage: what a disk, a cable or a careless tool does to bytes.


def flipped(draw, content):
    place = draw.randrange(len(content))
    byte = content[place] ^ (1 << draw.randrange(8))
    return content[:place] + bytes([byte]) + content[place + 1 :]


def cut(draw, content):
    return content[: draw.randrange(len(content))]


def without_a_piece(draw, content):
    start, end = sorted(draw.choices(range(len(content) + 1), k=2))
    return content[:start] + content[end:]


def with_a_piece(draw, content):
    place = draw.randrange(len(content) + 1)
    more = draw.choice([b"\n", b"\0", draw.randbytes(9), content, content[:place]])
    return content[:place] + more + content[place:]


def halves_swapped(draw, content):
    place = draw.randrange(len(content))
    return content[place:] + content[:place]


def zeroed(draw, content):
    start, end = sorted(draw.choices(range(len(content) + 1), k=2))
    return content[:start] + bytes(end - start) + content[end:]


def other_numbers(draw, content):
    """Return the content with another digit in the text at its beginning."""
    places = [i for i, c in enumerate(content[:600]) if chr(c).isdigit()]
    place = draw.choice(places or [0])
    return content[:place] + b"%d" % draw.randrange(10) + content[place + 1 :]


DAMAGE = [
    flipped, cut, without_a_piece, with_a_piece, halves_swapped, zeroed, other_numbers,
]  # fmt: skip


# Forgery: another header, with the right hash of it.


def _leaf(draw, header):
    return draw.choice(header["leaves"])


def size_changed(draw, header):
    _leaf(draw, header)[3] = draw.choice(NUMBERS)


def sizes_moved(draw, header):
    """Let the sum of all sizes be what it was."""
    one, other = _leaf(draw, header), _leaf(draw, header)
    bytes_moved = draw.choice([1, 4, 8, 10**9])
    one[3] += bytes_moved
    other[3] -= bytes_moved


def shape_changed(draw, header):
    leaf = _leaf(draw, header)
    leaf[2] = draw.choice([leaf[2] + [1], leaf[2][1:], [draw.choice(NUMBERS)], 3, None])


def type_changed(draw, header):
    _leaf(draw, header)[1] = draw.choice(["float64", "uint16", "object", "", 3, None])


def path_changed(draw, header):
    _leaf(draw, header)[0] = draw.choice(["", "[0]", _leaf(draw, header)[0], 3, None])


def leaf_removed(draw, header):
    header["leaves"].remove(_leaf(draw, header))


def leaf_doubled(draw, header):
    header["leaves"].append(_leaf(draw, header))


def part_removed(draw, header):
    _leaf(draw, header).pop(draw.randrange(4))


def field_removed(draw, header):
    header.pop(draw.choice(list(header)))


def field_replaced(draw, header):
    header[draw.choice(["leaves", "tree"])] = draw.choice([None, 3, "text", {}, [[]]])


FORGERY = [
    size_changed, sizes_moved, shape_changed, type_changed, path_changed, leaf_removed,
    leaf_doubled, part_removed, field_removed, field_replaced,
]  # fmt: skip


def odd_lines(draw, line):
    """Return a line of JSON, or of none, that no writer of ours has made."""
    leaf = line[line.index(b"[") : line.index(b"]") + 1]
    return draw.choice([
        lambda: b"[" * DEEP + b"]" * DEEP,
        lambda: line.replace(leaf, b"[" * DEEP + b"]" * DEEP, 1),
        lambda: line.replace(b"{", b'{"leaves": [], ', 1),
        lambda: line.replace(b"}", b', "leaves": []}', 1),
        lambda: line.replace(b": ", b":", 1),
        lambda: line.replace(b'"tree"', b'"size": NaN, "tree"', 1),
        lambda: b"9" * draw.choice([20, DEEP]),
        lambda: draw.choice([b"", b"null", b"{}", b"[]", b'"text"', b"\xff"]),
    ])()  # fmt: skip


def forged(draw, content):
    """Return a checkpoint with another header, under a hash of it."""
    _, line, body = content.split(b"\n", 2)
    if draw.random() < 0.3:
        line = odd_lines(draw, line)
    else:
        header = json.loads(line)
        draw.choice(FORGERY)(draw, header)
        line = json.dumps(header).encode()
    return checkpoints._seal(line + b"\n" + body) + line + b"\n" + body


def checkpoint_problem(seed, folder):
    """Return what is wrong with the reading of one damaged checkpoint, or None."""
    draw = random.Random(f"checkpoint {seed}")
    tree, file = drawn_tree(draw), Path(folder) / "run.ckpt"
    checkpoints.save(file, tree)
    change = draw.choice([*DAMAGE, forged, forged, forged])
    file.write_bytes(change(draw, file.read_bytes()))
    try:
        found = checkpoints.restore(file, tree)
    except Exception as error:
        told = isinstance(error, ValueError) and str(file) in str(error)
        return None if told else f"{seed}: {change.__name__}: {error!r}"
    if described(found) == described(tree):
        return None
    return f"{seed}: {change.__name__}: other numbers, silently: {found}"


def entry_problem(seed, folder):
    """Return what is wrong with the reading of one damaged cache entry, or None."""
    draw = random.Random(f"entry {seed}")
    code = draw.randbytes(draw.choice([0, 1, 100, 5000]))
    object_cache.write_object(str(folder), KEY, code)
    file = Path(folder) / (KEY + object_cache.CODE_SUFFIX)
    change = draw.choice(DAMAGE)
    content = file.read_bytes()
    file.write_bytes(changed := change(draw, content))
    try:
        found = object_cache.read_object(str(folder), KEY)
    except Exception as error:
        return f"{seed}: entry, {change.__name__}: {error!r}"
    wanted = code if changed == content else None
    return None if found == wanted else f"{seed}: entry, {change.__name__}: {found!r}"


@contextmanager
def apart():
    """Yield a folder, in which the secret of the cache is, too."""
    with tempfile.TemporaryDirectory() as folder:
        before = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = str(Path(folder, "state"))
        try:
            yield folder
        finally:
            os.environ.pop("XDG_STATE_HOME")
            if before is not None:
                os.environ["XDG_STATE_HOME"] = before


def damaged(seeds):
    """Return what is wrong with the reading of damaged files, for some seeds."""
    with apart() as folder:
        cache = Path(folder, "cache")
        found = [checkpoint_problem(seed, folder) for seed in seeds]
        found += [entry_problem(seed, cache) for seed in seeds]
    return [problem for problem in found if problem]


# Many at once. Number k saves a tree that is k everywhere, which tells halves apart.
SIZE = 5000


def numbered(k):
    return {"a": np.full(SIZE, k), "b": [np.full(SIZE, k), int(k)]}


def turn(file, k, problems):
    """Save number k, and restore what is there; note what is wrong."""
    try:
        checkpoints.save(file, numbered(k))
        found = checkpoints.restore(file, numbered(0))
        values = {*found["a"].tolist(), *found["b"][0].tolist(), found["b"][1]}
        if len(values) != 1:
            problems.append(f"a mixture of {values}")
    except Exception as error:
        problems.append(f"number {k}: {error!r}")


def at_once(rounds, folder, count=6):
    """Return what is wrong where threads save and restore one path at one time."""
    file, problems = Path(folder) / "one.ckpt", []

    def work(first):
        for k in range(rounds):
            turn(file, first + k * count, problems)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = [name for name in os.listdir(folder) if name.endswith(".part")]
    return problems + left


CHILD = """
import sys
from tests.kept_files import at_once, turn
problems = []
file, first, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for k in range(rounds):
    turn(file, first + 10 * k, problems)
print(problems)
"""


def in_processes(rounds, folder, killed=True):
    """Return what is wrong where processes do so, of which one is killed on the way."""
    file = Path(folder) / "one.ckpt"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, file, str(n), str(rounds)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            cwd=Path(__file__).parents[1],
        )
        for n in range(3)
    ]  # fmt: skip
    for child in children:
        child.stdout.readline()
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    if killed:
        while not file.exists():
            pass
        children[0].kill()
    problems = [child.communicate()[0].strip() for child in children]
    turn(file, 7, found := [])
    return [text for text in problems[killed:] if text != "[]"] + found


def main(arguments=None):
    options = options_of(__doc__, arguments, seed=0, count=1000, rounds=20)
    wrong = damaged(range(options.seed, options.seed + options.count))
    with apart() as folder:
        wrong += at_once(options.rounds, folder)
        wrong += in_processes(options.rounds, folder)
    counts = f"{options.count} damaged files of 2 formats, {options.rounds} rounds"
    return reported(f"{counts} of many writers", wrong)


if __name__ == "__main__":
    sys.exit(main())
