"""New programs from a fresh seed, until the time is over; faults are made small.

    make hunt SECONDS=600
    python -m tests.hunt --seconds 600 [--seed 7] [--family edges control] [--jobs 2]

Each family of programs runs in child processes, since wrong machine code may end one,
for processors of several kinds. What goes wrong is printed as a script of a few lines,
where a program can be made smaller, or with the command that runs it again. Where real
JAX is installed, some families compare with it.
"""

import importlib.util
import json
import os
import pickle
import re
import secrets
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from tests import control_sources, edge_programs, exact_programs, machine_programs
from tests.commands import options_of
from tests.processors import runnable_kinds

BLOCK, PATIENCE = 20, 900  # programs, seconds
ROUNDS, SECONDS_TO_SHRINK = 60, 240

# Families: from names to functions of a seed that return pairs of a text that says what
# goes wrong, and a case that can be made smaller, or None.


def edges(seed):
    """Sizes around vectors and tiles, guard bytes, layouts."""
    backend = "planned" if seed % 10 == 7 else "cpu"
    case = edge_programs.drawn(seed, backend)
    return [("\n".join(wrong), case)] if (wrong := case.problems()) else []


def lines(seed):
    """Straight-line programs of small arrays, with all functions."""
    program = machine_programs.drawn(seed)
    for backend in ("python", "cpu"):
        case = edge_programs.Case(
            program.inputs, dict.fromkeys(program.inputs, "plain"),
            tuple(program.lines), bool(seed % 4), (*machine_programs.WAYS,),
            bool(seed % 2), backend,
        )  # fmt: skip
        if wrong := case.problems():
            return [("\n".join(wrong), case)]
    return []


def exact(seed, ways=()):
    """Programs of whole numbers, bit by bit: eager, compiled, fused."""
    case, refused = exact_programs.drawn(seed, ways=ways)
    wrong = case.problems()
    return [("\n".join(wrong), case)] * bool(wrong) + told("\n".join(refused))


def control(seed):
    """Loops and branches."""
    case = control_sources.drawn(seed)
    return [("\n".join(wrong), case)] if (wrong := case.problems()) else []


def told(text):
    return [(text, None)] if text else []


def kernels(seed):
    """Random kernels of the language."""
    from tests import kernel_cases, vector_cases

    name = os.environ.get("MINIJAX_CPU", "")
    library = vector_cases.vector_library(vector_cases.target_of(name))
    chance = vector_cases.CHANCES[seed % len(vector_cases.CHANCES)]
    met = kernel_cases.of_random_kernels(seed, 8, chance)
    return told("\n".join(kernel_cases.differences(met, library)))


def threads(seed):
    """Kernels in parts."""
    from tests import thread_cases, vector_cases

    target = vector_cases.target_of(os.environ.get("MINIJAX_CPU", ""))
    wrong, _ = thread_cases.differences(thread_cases.random_kernels(seed, 6), target)
    return told("\n".join(map(str, wrong)))


def annotations(seed):
    """Machine code without vectors, tiles, kept rows, streams, threads, in turn."""
    from tests import annotations

    return told("\n".join(annotations.problems(seed)[0]))


def fusion(seed):
    """Fused programs."""
    from tests import fusion_cases

    programs = fusion_cases.random_programs(seed, 2)
    wrong = [fusion_cases.compare(*program, machine=True)[0] for program in programs]
    return told("\n".join(sum(wrong, [])))


def memory(seed):
    """Plans of memory."""
    from tests import memory_cases

    return told(memory_cases.problem(seed))


def cold(seed):
    """First uses of the package: threads, forks, Ctrl-C at any line."""
    from tests import cold_processes

    rng = np.random.default_rng(seed)
    names = [action.__name__ for action in cold_processes.ACTIONS]
    cases = [["mixture", seed], ["forked", float(rng.random() * 0.6)]]
    cases += [
        ["interrupted", int(rng.integers(24_000)), str(rng.choice(names))]
        for _ in range(3)
    ]
    return told("\n".join(map(str, cold_processes.compare(cases))))


def jax_lines(seed):
    """Straight-line programs beside real JAX."""
    from tests.random_programs import Comparison

    return told("\n".join(Comparison(seed).found))


def jax_exact(seed):
    """Programs of whole numbers beside real JAX, bit by bit."""
    return exact(seed, ("jax",))


def jax_control(seed):
    """Loops and branches beside real JAX."""
    from tests.random_control import ControlComparison, report

    comparison = ControlComparison(seed)
    return told(comparison.found and report(seed, comparison))


def compared_rules(seed, alone):
    from tests.random_calls import RulesComparison, report

    comparison = RulesComparison(seed, alone, 3)
    return told(comparison.found and report(seed, comparison))


def rules(seed):
    """Own rules, forgetting and random keys."""
    return compared_rules(seed, alone=True)


def jax_rules(seed):
    """Own rules, forgetting and random keys beside real JAX."""
    return compared_rules(seed, alone=False)


FAMILIES = {
    each.__name__: each
    for each in (
        edges,
        lines,
        exact,
        control,
        rules,
        kernels,
        annotations,
        threads,
        fusion,
        memory,
    )
}
if hasattr(os, "fork"):
    FAMILIES["cold"] = cold
WITH_JAX = {
    each.__name__: each for each in (jax_lines, jax_exact, jax_control, jax_rules)
}
CRASHING = {  # what a program was that has ended its process
    "edges": edge_programs.drawn,
    "exact": lambda seed: exact_programs.drawn(seed)[0],
    "jax_exact": lambda seed: exact_programs.drawn(seed, ways=("jax",))[0],
}
OFTEN = {"edges": 5, "exact": 4, "lines": 2, "control": 2}  # of ten or so blocks


def families():
    """Return the families that can be tried here."""
    both = FAMILIES | WITH_JAX
    return both if importlib.util.find_spec("jax") else FAMILIES


def kinds():
    """Return the names of processors whose code runs on this one."""
    return ["", *runnable_kinds()]


# Making a case smaller.


def minimised(case, environment):
    """Return the simplest case that is found to go wrong as well."""
    end = time.monotonic() + SECONDS_TO_SHRINK
    for _ in range(ROUNDS):
        found = first_that_fails([*case.smaller()], environment)
        if found is None or time.monotonic() > end:
            return case
        case = found
    return case


def first_that_fails(cases, environment):
    """Return the first case that goes wrong, in a process of its own, or None."""
    command = [sys.executable, "-m", "tests.hunt", "--try"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, env=environment,
    ) as child:  # fmt: skip
        try:
            said, _ = child.communicate(pickle.dumps(cases), timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            said, _ = child.communicate()
    words = said.decode().split()
    if child.returncode == 0 and words[-1:] != ["wrong"]:
        return None
    numbers = [word for word in words if word != "wrong"]
    return cases[int(numbers[-1])] if numbers else None


def try_cases():
    """Try cases from the standard input until one goes wrong."""
    for number, case in enumerate(pickle.load(sys.stdin.buffer)):
        print(number, flush=True)
        if case.problems():
            print("wrong", flush=True)
            return


# Children, and who looks after them.


def run_block(family, seed, count):
    """Run programs one after the other; print what happens."""
    for number in range(seed, seed + count):
        print(f"seed {number}", flush=True)
        for text, case in families()[family](number):
            shown = pickle.dumps(case).hex() if case is not None else ""
            print("PROBLEM", json.dumps([text, shown]), flush=True)


class Block:
    """So many programs of a family, in a process of their own."""

    def __init__(self, family, seed, kind):
        self.family, self.seed, self.kind = family, seed, kind
        self.environment = {
            **os.environ, "MINIJAX_CPU": kind, "JAX_ENABLE_COMPILATION_CACHE": "0",
            "PYTHONHASHSEED": str(seed % 1000), "JAX_PLATFORMS": "cpu",
        }  # fmt: skip

    @property
    def command(self):
        """What runs it."""
        command = [sys.executable, "-X", "faulthandler", "-m", "tests.hunt", "--block"]
        return [*command, self.family, "--seed", str(self.seed)]

    def run(self, count=BLOCK):
        """Return how many programs were run, and the faults, as texts."""
        try:
            done = subprocess.run(
                [*self.command, "--count", str(count)], env=self.environment,
                capture_output=True, text=True, timeout=PATIENCE,
            )  # fmt: skip
            said, status = done.stdout, done.returncode
            error = done.stderr[-3000:]
        except subprocess.TimeoutExpired as expired:
            said, status = (expired.stdout or b"").decode(), "no answer"
            error = ""
        found = [json.loads(x[8:]) for x in said.splitlines() if x[:8] == "PROBLEM "]
        faults = [self.fault(*pair) for pair in found]
        seeds = [int(n) for n in re.findall(r"^seed (\d+)$", said, re.MULTILINE)]
        if status:
            faults.append(self.crash(seeds[-1] if seeds else self.seed, status, error))
        return len(seeds), faults

    def crash(self, seed, status, error):
        """The text of a fault that has ended the process."""
        case = CRASHING[self.family](seed) if self.family in CRASHING else None
        text = f"seed {seed}: the process ended with {status}\n{error}"
        return self.fault(text, pickle.dumps(case).hex() if case else "")

    def fault(self, text, shown):
        """The text of a fault."""
        if shown:
            case = minimised(pickle.loads(bytes.fromhex(shown)), self.environment)
            again = case.script()
        else:
            again = " ".join(["python", *self.command[3:]])
        kind = f"MINIJAX_CPU={self.kind} " if self.kind else ""
        return f"{self.family}, {kind}\n{text[:4000]}\n--- shown by\n{again}\n"


def hunt(seconds, seed, chosen, jobs):
    """Run blocks until the time is over; return the faults, and counts by family."""
    rng, end = np.random.default_rng(seed), time.monotonic() + seconds
    names = [name for name in chosen for _ in range(OFTEN.get(name, 1))]
    counts, faults = Counter(), []

    def work(_):
        while time.monotonic() < end:
            family = names[rng.integers(len(names))]
            start, kind = int(rng.integers(2**31)), str(rng.choice(kinds()))
            count, found = Block(family, start, kind).run()
            counts[family] += count
            faults.extend(found)
            for text in found:
                print(text, flush=True)
            left = max(end - time.monotonic(), 0)
            line = f"… {sum(counts.values())} programs, {left:.0f} s left"
            print(line, file=sys.stderr, flush=True)

    with ThreadPoolExecutor(jobs) as pool:
        [*pool.map(work, range(jobs))]
    return faults, counts


def main():
    """Run from the command line."""
    options = options_of(
        __doc__, seconds=60, seed=-1, family=[*families()], jobs=os.cpu_count(),
        block="", count=BLOCK, **{"try": False},
    )  # fmt: skip
    if vars(options)["try"]:
        return try_cases()
    if options.block:
        return run_block(options.block, options.seed, options.count)
    seed = secrets.randbelow(2**31) if options.seed < 0 else options.seed
    print(f"seed {seed}, families {', '.join(options.family)}", flush=True)
    faults, counts = hunt(options.seconds, seed, options.family, options.jobs)
    print(", ".join(f"{name}: {count}" for name, count in counts.most_common()))
    print(f"seed {seed}: {sum(counts.values())} programs, {len(faults)} faults")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
