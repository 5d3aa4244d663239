"""Run test-suites of other packages over minijax under the name jax.

    python -m tests.conformance optax autograd     # beside what is recorded of JAX
    python -m tests.conformance optax --real       # over real JAX, to record it

Over minijax a suite is started by `python -m minijax.as_jax -m pytest`.

Source archives and environments are kept in `_build/conformance`. Files of tests run
one after the other, each in a process; what has run is not run again without --again.
"""

import argparse
import fnmatch
import json
import os
import resource
import shutil
import subprocess
import sys
import tarfile
import venv
import xml.etree.ElementTree
from pathlib import Path

from tests.conformance.suites import ABSENT, SUITES

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = ROOT / "_build" / "conformance"
PYTHON = KEPT / "venv" / "bin" / "python"
RECORDED = HERE / "recorded.json"
ALWAYS = "numpy ml_dtypes llvmlite scipy opt_einsum typing_extensions pytest"
QUIETLY = "-q --no-input --disable-pip-version-check".split()


def pip(*words):
    """Run pip in the environment of the suites, within our constraints."""
    limits = ["-c", ROOT / "constraints.txt"]
    subprocess.run(
        [PYTHON, "-m", "pip", *words[:1], *QUIETLY, *limits, *words[1:]], check=True
    )


def prepared(name):
    """Fetch a suite and what it needs; return the folder of its source."""
    suite, archives = SUITES[name], KEPT / "archives"
    if not PYTHON.exists():
        venv.create(KEPT / "venv", with_pip=True)
        pip("install", *ALWAYS.split(), "pytest-timeout")
    stamp = KEPT / f"{name}-{suite.version}.installed"
    if not stamp.exists():
        pip("install", *suite.needs.split() or ["numpy"])
        pip(
            "download",
            "--no-deps",
            "--no-binary",
            name,
            "-d",
            archives,
            f"{name}=={suite.version}",
        )
        if suite.beside:
            pip("install", "--no-deps", *suite.beside.split())
        [archive] = archives.glob(f"{name}-{suite.version}*.tar.gz")
        with tarfile.open(archive) as members:
            members.extractall(KEPT / "sources", filter="data")
        stamp.touch()
    return KEPT / "sources" / f"{name}-{suite.version}"


def path_of(side, name, source):
    """Return the folders where a run finds modules: the package called jax first."""
    if side == "real":
        first = [KEPT / "jax"]
        if not first[0].exists():
            pip(
                "install",
                "--no-deps",
                "--target",
                first[0],
                "jax==0.10.2",
                "jaxlib==0.10.2",
            )
    else:
        first = [ROOT]
    front = [HERE / folder for folder in SUITES[name].front]
    folders = [*first, *front, source, source / "src", source / "tests"]
    return os.pathsep.join(map(str, folders))


def run_file(side, name, source, file, seconds):
    """Run the tests of a file; return its report, which is kept."""
    where = file.relative_to(source)
    report = KEPT / "results" / side / name / (str(where).replace("/", ".") + ".xml")
    if report.exists():
        return report
    report.parent.mkdir(parents=True, exist_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    setting = {
        **os.environ,
        "PYTHONPATH": path_of(side, name, source),
        "JAX_PLATFORMS": "cpu",
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CACHE_HOME": str(KEPT / "cache" / report.stem),
    }
    shutil.rmtree(setting["XDG_CACHE_HOME"], ignore_errors=True)
    setting.pop("XLA_FLAGS", None)
    flags = [f"--timeout={seconds}", f"--junitxml={report}", f"--rootdir={source}"]
    module = ["pytest"] if side == "real" else ["minijax.as_jax", "-m", "pytest"]
    with open(report.with_suffix(".log"), "w") as log:
        subprocess.run(
            [
                PYTHON,
                "-P",
                "-m",
                *module,
                "-c",
                os.devnull,
                "-q",
                "--tb=short",
                "-W",
                "ignore",
                "-p",
                "no:cacheprovider",
                "-p",
                "no:subtests",
                *flags,
                str(where),
            ],
            cwd=source,
            env=setting,
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
            preexec_fn=on_one_core,
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    report.with_suffix(".seconds").write_text(f"{used:.2f}")
    return report


def on_one_core():
    """Pin a process to one core: compilers of many threads are not compared here."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def seconds_of(side, name, stems):
    """Return the processor seconds of the files with some names, or None."""
    files = (KEPT / "results" / side / name).glob("*.seconds")
    found = [(file.name.split(".")[-3], float(file.read_text())) for file in files]
    times = [seconds for stem, seconds in found if stem in stems]
    return sum(times) if len(times) == len(stems) else None


def outcomes(side, name, seconds):
    """Return for each test: passed, skipped, or the message of its failure."""
    source, found = prepared(name), {}
    for file in sorted(source.glob(SUITES[name].tests)):
        report = run_file(side, name, source, file, seconds)
        cases = []
        if report.exists():
            cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
        if not cases:
            found[f"{file.stem}::all"] = "The file cannot be run."
        for case in cases:
            group = case.get("classname", "").rpartition(".")[2]
            label = f"{file.stem}::{group}::{case.get('name')}"
            bad = [part for part in case if part.tag in ("failure", "error")]
            skipped = any(part.tag == "skipped" for part in case)
            passed = "skipped" if skipped else "passed"
            found[label] = bad[0].get("message", "failed") if bad else passed
    return found


def recorded():
    return json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


def record(name, found, files):
    """Write down what real JAX passes: how many, and which tests it does not.

    Args:
      name: of the suite.
      found: the outcomes.
      files: those of `found`; the tests of other files count as if JAX passed them.
    """
    entries = recorded()
    rest = sorted(test for test, outcome in found.items() if outcome != "passed")
    entries[name] = {
        "version": SUITES[name].version,
        "passed": len(found) - len(rest),
        "not measured": sorted(set(stems(name)) - set(files)),
        "seconds": {stem: seconds_of("real", name, {stem}) for stem in sorted(files)},
        "not passed": rest,
    }
    RECORDED.write_text(json.dumps(dict(sorted(entries.items())), indent=1) + "\n")


def stems(name):
    return [file.stem for file in prepared(name).glob(SUITES[name].tests)]


def skipped_for(name, test):
    """Return the reason for which a test is skipped, or None."""
    for reason, patterns in SUITES[name].skips.items():
        if any(fnmatch.fnmatch(test, pattern) for pattern in patterns):
            return reason
    return None


def compared(name, found, entry):
    """Print what we pass of what JAX passes; return whether the skip list is right."""
    wanted = [test for test in found if test not in set(entry["not passed"])]
    passed = [test for test in wanted if found[test] == "passed"]
    failed = [test for test in wanted if found[test] != "passed"]
    skipped = [test for test in failed if skipped_for(name, test)]
    stale = [test for test in passed if skipped_for(name, test)]
    groups: dict = {}
    for test in failed:
        if test not in skipped:
            groups.setdefault(found[test].strip().split("\n")[0][:110], []).append(test)
    for message, tests in sorted(groups.items(), key=lambda item: -len(item[1])):
        print(f"  {len(tests):4} {tests[0]}: {message}")
    for test in stale:
        print(f"  in the skip list, and passes: {test}")
    unknown = [t for t in found if t.partition("::")[0] in entry["not measured"]]
    count = entry["passed"] + len(unknown)
    share = 100 * len(passed) / max(count, 1)
    print(
        f"{name} {SUITES[name].version}: {len(passed)} passed of {count} "
        f"that JAX passes ({share:.1f} %), {len(skipped)} skipped with a reason, "
        f"{len(found)} tests"
    )
    record_ours(name, len(passed), count, entry)
    return not stale


def record_ours(name, passed, of, entry):
    """Write down and print what we pass, and the seconds of both sides.

    Args:
      name: of the suite.
      passed: how many tests pass of those that pass over real JAX.
      of: how many these are.
      entry: what is recorded of JAX; seconds count for files that have both.
    """
    ours = {stem: seconds_of("ours", name, {stem}) for stem in entry.get("seconds", ())}
    pairs = [(entry["seconds"][s], x) for s, x in ours.items() if x]
    theirs, here = map(sum, zip(*pairs)) if pairs else (0.0, 0.0)
    found = {"passed": passed, "of": of, "seconds of JAX": round(theirs, 1)}
    entries = recorded()
    if name not in entries:
        return
    entries[name]["ours"] = found | {"seconds": round(here, 1)}
    RECORDED.write_text(json.dumps(entries, indent=1) + "\n")
    if pairs:
        print(
            f"{name}: {theirs:.0f} s over JAX, {here:.0f} s over minijax "
            f"({here / theirs:.2f}), {len(pairs)} files, one core, processor time"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=sorted(SUITES))
    parser.add_argument(
        "--real", action="store_true", help="over real JAX, and record it"
    )
    parser.add_argument("--again", action="store_true", help="also files that have run")
    parser.add_argument("--timeout", type=int, default=60, help="seconds for each test")
    options = parser.parse_args()
    right, side = True, "real" if options.real else "ours"
    for name in options.names:
        if name not in SUITES:
            print(f"{name} {ABSENT.get(name, 'is no suite that is known here')}")
            right = False
            continue
        if options.again:
            for report in (KEPT / "results" / side / name).glob("*.xml"):
                report.unlink()
        found = outcomes(side, name, options.timeout)
        if options.real:
            record(name, found, {test.partition("::")[0] for test in found})
        elif name in recorded():
            right = compared(name, found, recorded()[name]) and right
        else:
            passed = sum(outcome == "passed" for outcome in found.values())
            print(f"{name}: {passed} of {len(found)} passed; nothing recorded of JAX")
    sys.exit(not right)


if __name__ == "__main__":
    main()
