"""First uses of the package: by threads, forked, interrupted, each module first.

Each case is a process in which nothing of the package has been imported yet. A nursery
imports what the package needs, and forks the cases: one costs a third of a second.

python -m tests.cold_processes                     # all cases
python -m tests.cold_processes --kind threads      # those of one kind
"""

import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from tests.commands import options_of, reported
from tests.mutants_package import prelude

ROOT = Path(__file__).parents[1]
THREADS = 8
LIMIT = 60  # seconds; a case takes less than one, unless it hangs

DOORS = """
    minijax minijax.numpy minijax.lax minijax.tree_util minijax.tree minijax.debug
    minijax.stages minijax.errors minijax.experimental minijax.extend.core
    minijax.flatten_util minijax.test_util minijax.pytrees.api_util
    minijax.numpy.linalg minijax.interpreters minijax.interpreters.ad
    minijax.interpreters.batching minijax.interpreters.partial_eval
    minijax.interpreters.mlir minijax.interpreters.xla minijax.core minijax.jaxprs.jaxpr
    minijax.arrays.array minijax.arrays.dtypes minijax.arrays.devices
    minijax.jitting.api minijax.scans.scan minijax.cpu_backend.backend
""".split()


# What a process does first. Each returns a text, which is the same in all processes.


def arithmetic():
    import minijax.numpy as jnp

    x = jnp.arange(3)
    return repr([x == 1, -x, x + 1.5, x[1:], x @ x, jnp.sin(x), bool(x[0])])


def compiled():
    from minijax import jit

    return repr(jit(lambda x: x * 2 + (x == 1))(1))


def differentiated():
    from minijax import grad

    return repr(grad(lambda x: (x * x - 1) ** 2)(3.0))


def mapped():
    import numpy as np

    import minijax

    return repr(minijax.vmap(lambda x: (x == 1, x - 1))(np.arange(3)))


class Pair:
    def __init__(self, left, right):
        self.left, self.right = left, right


def trees():
    from minijax import tree_util

    def flatten(pair):
        return (pair.left, pair.right), None

    class Own(Pair):
        """Each thread has its own class, since a class is registered once."""

    tree_util.register_pytree_node(Own, flatten, lambda _, parts: Own(*parts))
    tree = {"a": Own(1, (2, None)), "b": [3]}
    doubled = tree_util.tree_map(lambda x: x * 2, tree)
    return repr(tree_util.tree_leaves(doubled))


def printed():
    from minijax import lax, make_jaxpr

    def program(x):
        return lax.cond(x > 0, lambda x: x + 1, lambda x: -x, x)

    return str(make_jaxpr(program)(1.0))


def looped():
    import numpy as np

    from minijax.lax import fori_loop, scan

    total = fori_loop(0, 4, lambda i, total: total + i, 0)
    return repr((total, scan(lambda sum, x: (sum + x, sum * x), 0, np.arange(3))))


def called_back():
    import numpy as np

    from minijax.debug import callback

    seen = []
    callback(lambda x: seen.append(repr(x == 1)), np.arange(3))
    return repr(seen)


def settings():
    from minijax import config, numpy, typeof

    return repr((config.jax_enable_x64, numpy.finfo("float32").bits, typeof(1.0)))


def convolved():
    import numpy as np

    from minijax import jit, lax

    image, window = np.ones((1, 16, 64, 64), "f"), np.ones((16, 16, 3, 3), "f")
    made = jit(lambda v: lax.conv_general_dilated(v, window, (1, 1), "SAME").sum())
    return repr(made(image))


def sharded():
    import numpy as np

    import minijax
    from minijax.sharding import PartitionSpec as P

    mesh = minijax.make_mesh((1,), ("i",))
    how = {"mesh": mesh, "in_specs": P("i"), "out_specs": P("i")}
    f = minijax.shard_map(lambda v: v + minijax.lax.psum(v, "i"), **how)
    x = minijax.device_put(np.arange(4), minijax.NamedSharding(mesh, P("i")))
    return repr((minijax.jit(f)(x), x + x))


ACTIONS = [
    arithmetic, compiled, differentiated, mapped, trees, printed, looped, called_back,
    settings, convolved, sharded,
]  # fmt: skip


def everything():
    """All actions, one after the other."""
    return {action.__name__: action() for action in ACTIONS}


# The kinds of cases. Each is a function that runs in a process of its own, and returns
# a dictionary from actions, or anything else, to texts; `ACTIONS` are compared.


def in_threads(jobs):
    """Run functions in threads that begin together; what they return or raise."""
    barrier, results = threading.Barrier(len(jobs)), [None] * len(jobs)

    def work(place, job):
        barrier.wait()
        try:
            results[place] = job()
        except BaseException as error:
            results[place] = f"{type(error).__name__}: {error}"

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def threads(action):
    """Several threads begin with the same action."""
    [job] = [job for job in ACTIONS if job.__name__ == action]
    return [[action, result] for result in in_threads([job] * THREADS)]


def mixture(turn):
    """Several threads begin with different actions, or modules; then everything."""
    jobs = [ACTIONS[(turn + i) % len(ACTIONS)] for i in range(THREADS)]
    modules = [DOORS[(7 * turn + i) % len(DOORS)] for i in range(THREADS)]
    direct = [lambda m=m: importlib.import_module(m).__name__ for m in modules]
    results = in_threads([*jobs, *direct])
    found = [[job.__name__, result] for job, result in zip(jobs, results)]
    assert results[THREADS:] == modules, results[THREADS:]
    return [*found, *everything().items()]


def crossed():
    """One thread loads and waits for a module that another imports, and that asks too.

    The module is `forward_api`, whose first lines ask for a public name.
    """
    from minijax import _lazy

    inside, names = threading.Event(), _lazy._names

    def slow_names(package):
        if threading.current_thread().name == "importer" and not inside.is_set():
            inside.set()
            wait_until(lambda: not free(_lazy._lock))
            time.sleep(0.2)  # the other goes on to the module that we are in
        return names(package)

    _lazy._names = slow_names
    module = "minijax.pytrees.api_util"
    importer = threading.Thread(
        target=importlib.import_module, args=[module], name="importer"
    )
    importer.start()
    assert inside.wait(LIMIT), f"{module} asks for no public name any more"
    found = [*everything().items()]
    importer.join()
    return found


def meanwhile(action):
    """A thread asks while another one is inside the module of the operators."""
    inside, answered = threading.Event(), threading.Event()

    def tracer(frame, event, arg):
        ours = frame.f_globals.get("__name__") == "minijax.numpy.array_methods"
        if ours and not inside.is_set():
            inside.set()
            answered.wait(1)  # the asker waits for us, if all is well

    [job] = [job for job in ACTIONS if job.__name__ == action]
    threading.settrace(tracer)
    loader = threading.Thread(target=arithmetic)
    loader.start()
    threading.settrace(None)
    inside.wait()
    [found] = in_threads([job])
    answered.set()
    loader.join()
    return [[action, found]]


def free(lock):
    """Whether nobody holds a lock."""
    if lock.acquire(blocking=False):
        lock.release()
        return True
    return False


def wait_until(true):
    end = time.monotonic() + LIMIT
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)


def module_first(name):
    """A module is imported before anything else."""
    importlib.import_module(name)
    return [*everything().items()]


def alone(name):
    """A module is imported, and nothing else."""
    importlib.import_module(name)
    assert name in sys.modules
    return []


def forked(delay):
    """A child is forked while another thread loads the package; both use it."""
    from minijax import _lazy

    loader = threading.Thread(target=arithmetic)
    loader.start()
    wait_until(lambda: not free(_lazy._lock))
    time.sleep(delay)
    found = both_sides(everything)
    loader.join()
    return found


def forked_before(delay):
    """A child is forked before the first use, and one after it."""
    return [*both_sides(everything), *both_sides(everything)]


def both_sides(act):
    """What an action returns in a forked child, and then here."""
    left, _ = signal.getitimer(signal.ITIMER_REAL)
    found = received(*spawned(lambda: [*act().items()], 0.6 * left))
    assert isinstance(found, list), found
    return [*found, *act().items()]


def interrupted(count, first):
    """Ctrl-C while a line of the package runs, during import or the first action.

    Args:
      count: of the lines before, in the outermost code of modules or in functions.
      first: the name of the action.
    """
    left = count
    where = None

    def tracer(frame, event, arg):
        nonlocal left, where
        ours = str(frame.f_globals.get("__name__")).startswith("minijax.")
        if not ours:
            return None
        if event == "line" and where is None:
            left -= 1
            if left <= 0:
                where = f"{frame.f_globals['__name__']}:{frame.f_lineno}"
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
        return tracer

    [job] = [job for job in ACTIONS if job.__name__ == first]
    sys.settrace(tracer)
    try:
        job()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(None)
    return [*everything().items(), ["line", where]]


KINDS = {
    f.__name__: f
    for f in (
        threads, mixture, meanwhile, crossed, module_first, alone, forked,
        forked_before, interrupted,
    )
}  # fmt: skip


def all_cases():
    """The full set, as lists: the kind, and its arguments."""
    names = [action.__name__ for action in ACTIONS]
    return [
        *[["threads", name] for name in names for _ in range(3)],
        *[["mixture", turn] for turn in range(26)],
        *[["meanwhile", name] for name in names],
        ["crossed"],
        *[["module_first", name] for name in DOORS],
        *[["forked", delay / 100] for delay in range(0, 60, 3)],
        ["forked_before", 0],
        *[["interrupted", 60 * n, names[n % 7]] for n in range(1, 400)],
    ]


def a_share():
    """What `make test` runs."""
    return [
        ["threads", "arithmetic"], ["threads", "compiled"], ["threads", "called_back"],
        ["threads", "convolved"], ["threads", "sharded"],
        ["mixture", 0], ["mixture", 1], ["meanwhile", "mapped"], ["crossed"],
        *[["module_first", name] for name in DOORS[1:18:4]],
        ["forked", 0.05], ["forked", 0.15], ["forked_before", 0],
        *[["interrupted", n, "compiled"] for n in (40, 2600, 9000)],
    ]  # fmt: skip


# The nursery.


def spawned(job, limit):
    """Fork a process that writes down what a function returns; its id, and a pipe.

    An alarm ends it if it hangs: nothing is left behind that holds the pipe.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    signal.alarm(int(limit))
    try:
        answer = job()
    except BaseException as error:
        answer = f"{type(error).__name__}: {error}"
    with os.fdopen(writer, "w") as pipe:
        json.dump(answer, pipe)
    os._exit(0)


def received(pid, pipe):
    """What a forked process answers; a text if it died or did not end."""
    with os.fdopen(pipe) as answer:
        text = answer.read()
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGALRM:
        return "did not end"
    return json.loads(text) if code == 0 else f"ended with {code}"


def nursery(cases, limit):
    """Run cases one after the other; the answer of each."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    expected = received(*spawned(lambda: [*everything().items()], limit))
    assert isinstance(expected, list), expected
    answers = [received(*spawned(lambda c=c: run_case(c), limit)) for c in cases]
    return [wrong_in(answer, dict(expected)) for answer in answers]


def run_case(case):
    kind, *arguments = case
    exec(prelude(), {"__name__": "mutant"})
    return KINDS[kind](*arguments)


def wrong_in(answer, expected):
    """What an answer has that it should not have: a list of texts."""
    if isinstance(answer, str):
        return [answer]
    return [
        f"{name}: {text}\nexpected: {expected[name]}"
        for name, text in answer
        if name in expected and text != expected[name]
    ]


def preload():
    """Import what the package needs, and nothing of it."""
    for name in "numpy ml_dtypes llvmlite.binding llvmlite.ir ast inspect".split():
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            assert name == "ml_dtypes"
    assert not any(name.startswith("minijax") for name in sys.modules)


def compare(cases, limit=LIMIT):
    """Run cases in a nursery; a text for each that went wrong."""
    command = [sys.executable, "-m", "tests.cold_processes", "--limit", str(limit)]
    paths = [str(ROOT), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "MINIJAX_NURSERY": "1"}
    done = subprocess.run(
        command,
        input=json.dumps(cases),
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    return [
        f"{' '.join(map(str, case))}: " + "\n".join(wrong)
        for case, wrong in zip(cases, answers)
        if wrong
    ]


def main():
    if os.environ.pop("MINIJAX_NURSERY", None):
        options = options_of(__doc__, limit=float(LIMIT))
        preload()
        print(json.dumps(nursery(json.load(sys.stdin), options.limit)))
        return 0
    options = options_of(__doc__, kind="")
    cases = [case for case in all_cases() if options.kind in ("", case[0])]
    return reported(f"{len(cases)} cold processes", compare(cases))


if __name__ == "__main__":
    sys.exit(main())
