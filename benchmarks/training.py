"""Time and memory of the training examples, with minijax and with real JAX.

    .venv-oracle/bin/python benchmarks/training.py     (after `make oracle`)

Each example runs in processes of its own, in turns, on one core. Of each the least
time is kept. What was measured goes into `book/helper/data/training.json`, which
chapter 39 shows.
"""

import argparse
import datetime
import json
import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORD = ROOT / "book" / "helper" / "data" / "training.json"
PROGRAMS = {
    "conv_digits, 660 steps": ["conv_digits.py", "--steps", "660"],
    "conv_digits, 20 steps": ["conv_digits.py", "--steps", "20"],
    "sonnets, 300 steps": ["sonnets.py", "--steps", "300"],
    "sonnets, 20 steps": ["sonnets.py", "--steps", "20"],
}
SAID = re.compile(r"([\d.]+) s, ([\d.]+) s of the processor, (\d+) MB at most")
LOSS = re.compile(r"loss ([\d.]+), 0 steps before the last")


def run(program, extra):
    """Run an example once; return seconds, megabytes, and the last loss."""
    script, *options = program
    command = [sys.executable, str(ROOT / "examples" / script), *options, *extra]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    said = SAID.search(done.stdout)
    return float(said[2]), int(said[3]), float(LOSS.search(done.stdout)[1])


def processor():
    """Return the name of the processor."""
    found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return found[1] if found else platform.processor()


def main():
    """Run everything in turns, and write what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    rows = {}
    for name, program in PROGRAMS.items():
        found = {"minijax": [], "jax": []}
        for _ in range(rounds):
            for library, runs in found.items():
                runs.append(run(program, ["--jax"] * (library == "jax")))
        rows[name] = {library: min(runs) for library, runs in found.items()}
        print(name, rows[name], flush=True)
    record = {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "versions": {"minijax": version("minijax-book"), "jax": version("jax")},
        "rows": rows,
    }
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
