"""Run test-suites of other packages over minijax under the name jax.

    python -m tests.conformance optax autograd     # beside what is recorded of JAX
    python -m tests.conformance optax --real       # over real JAX, to record it
    python -m tests.conformance --whole            # all tests, over both: a night

Over minijax a suite is started by `python -m minijax.as_jax -m pytest`.

Source archives and environments are kept in `_build/conformance`. A suite runs in one
process; what has run is not run again without --again.
"""

import argparse
import compileall
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
from functools import cache
from pathlib import Path

from tests.conformance.plugins.one_of import as_of_jax
from tests.conformance.suites import ABSENT, SUITES

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEPT = ROOT / "_build" / "conformance"
PYTHON = KEPT / "venv" / "bin" / "python"
RECORDED = HERE / "recorded.json"
ALWAYS = "numpy ml_dtypes llvmlite scipy opt_einsum typing_extensions pytest"
PLAINLY = (
    f"-c {os.devnull} -q --tb=short -W ignore -p no:cacheprovider -p no:subtests "
    "-p one_of --continue-on-collection-errors"
).split()
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
        first = [minijax_alone()]
    front = [HERE / folder for folder in ("plugins", *SUITES[name].front)]
    inside = [source / folder for folder in ("src", "tests", "test")]
    folders = [*first, *front, source, *inside]
    return os.pathsep.join(map(str, folders))


@cache
def minijax_alone():
    """Return a folder with minijax and nothing else, compiled to bytes as a wheel's."""
    folder = KEPT / "ours"
    folder.mkdir(exist_ok=True)
    if not (folder / "minijax").exists():
        (folder / "minijax").symlink_to(ROOT / "minijax")
    compileall.compile_dir(ROOT / "minijax", quiet=1)
    return folder


def run_suite(side, name, options):
    """Run the chosen tests of a suite in one process; return their kept report."""
    source = prepared(name)
    report = folder_of(side, options) / f"{name}.xml"
    if report.exists() and not options.again:
        return report
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)
    shutil.rmtree(KEPT / "cache" / side, ignore_errors=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    setting = {
        **os.environ,
        "PYTHONPATH": path_of(side, name, source),
        "JAX_PLATFORMS": "cpu",
        "PYTHONDONTWRITEBYTECODE": "1",
        "XDG_CACHE_HOME": str(KEPT / "cache" / side),
        "ONE_OF": "1" if options.whole else str(SUITES[name].one_of),
        **SUITES[name].setting,
    }
    setting.pop("XLA_FLAGS", None)
    module = ["pytest"] if side == "real" else ["minijax.as_jax", "-m", "pytest"]
    flags = [f"--timeout={options.timeout}", f"--junitxml={report}"]
    flags += [f"--rootdir={source}", *PLAINLY, *files_of(name)]
    with open(report.with_suffix(".log"), "w") as log:
        subprocess.run(
            [PYTHON, "-P", "-m", *module, *flags],
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


def folder_of(side, options):
    """Return where the results are kept that belong together."""
    return KEPT / ("whole" if options.whole else "results") / side


def seconds_of(side, name, options):
    """Return the processor seconds of the last run of a suite."""
    text = (folder_of(side, options) / f"{name}.seconds").read_text()
    return round(float(text), 1)


def files_of(name):
    """Return the files with tests that are run, in order."""
    source, suite = prepared(name), SUITES[name]
    left = [pattern for patterns in suite.left_out.values() for pattern in patterns]
    found = {file for pattern in suite.tests.split() for file in source.glob(pattern)}
    names = sorted(file.relative_to(source) for file in found)
    return [file for file in names if not any(file.match(each) for each in left)]


def outcomes(side, name, options):
    """Return for each test: passed, skipped, or the message of its failure."""
    report, found = run_suite(side, name, options), {}
    if not report.exists():
        log = report.with_suffix(".log").read_text().split("\n")
        return {"all": "The suite cannot be run: " + " ".join(log[-4:])}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        label = as_of_jax(f"{case.get('classname')}::{case.get('name')}")
        bad = [part for part in case if part.tag in ("failure", "error")]
        skipped = any(part.tag == "skipped" for part in case)
        passed = "skipped" if skipped else "passed"
        found[label] = bad[0].get("message", "failed") if bad else passed
    return found


def recorded():
    return json.loads(RECORDED.read_text()) if RECORDED.exists() else {}


def entry_of(name, found, options):
    """Return what is written down of real JAX: how many pass, and which tests do not.

    Args:
      name: of the suite.
      found: the outcomes over real JAX.
      options: those of the command.
    """
    rest = sorted(test for test, outcome in found.items() if outcome != "passed")
    return {
        "version": SUITES[name].version,
        "passed": len(found) - len(rest),
        "one of": 1 if options.whole else SUITES[name].one_of,
        "seconds": seconds_of("real", name, options),
        "not passed": rest,
    }


def record(name, entry):
    """Write down an entry, in the place of the one before."""
    entries = dict(sorted({**recorded(), name: entry}.items()))
    RECORDED.write_text(json.dumps(entries, indent=1) + "\n")


def skipped_for(name, test):
    """Return the reason for which a test is skipped, or None."""
    for reason, patterns in SUITES[name].skips.items():
        if any(fnmatch.fnmatch(test, pattern) for pattern in patterns):
            return reason
    return None


def compared(name, found, entry):
    """Print what we pass of what JAX passes.

    Args:
      name: of the suite.
      found: the outcomes over minijax.
      entry: what real JAX passes.

    Returns:
      How many tests pass, and those that pass though they are in the skip list.
    """
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
    count = entry["passed"]
    share = 100 * len(passed) / max(count, 1)
    print(
        f"{name} {SUITES[name].version}: {len(passed)} passed of {count} "
        f"that JAX passes ({share:.1f} %), {len(skipped)} skipped with a reason, "
        f"{len(found)} tests"
    )
    return len(passed), stale


def beside_jax(name, found, options):
    """Print and record what we pass and both times; return whether all is expected."""
    if options.whole:
        entry = entry_of(name, outcomes("real", name, options), options)
    elif (entry := recorded().get(name)) is None:
        passed = sum(outcome == "passed" for outcome in found.values())
        print(f"{name}: {passed} of {len(found)} passed; nothing recorded of JAX")
        return False
    passed, stale = compared(name, found, entry)
    here, theirs = seconds_of("ours", name, options), entry["seconds"]
    print(
        f"{name}: {theirs:.0f} s over JAX, {here:.0f} s over minijax "
        f"({here / theirs:.2f}), one core, processor time",
        flush=True,
    )
    if not options.whole:
        ours = {"passed": passed, "of": entry["passed"], "seconds": here}
        record(name, entry | {"ours": ours})
    return not stale


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=sorted(SUITES))
    parser.add_argument(
        "--real", action="store_true", help="over real JAX, and record it"
    )
    parser.add_argument(
        "--whole", action="store_true", help="all tests, over both; nothing recorded"
    )
    parser.add_argument(
        "--again", action="store_true", help="also suites that have run"
    )
    parser.add_argument("--timeout", type=int, default=60, help="seconds for each test")
    options = parser.parse_args()
    right, side = True, "real" if options.real else "ours"
    for name in options.names:
        if name not in SUITES:
            print(f"{name} {ABSENT.get(name, 'is no suite that is known here')}")
            right = False
            continue
        found = outcomes(side, name, options)
        if not options.real:
            right = beside_jax(name, found, options) and right
        elif not options.whole:
            record(name, entry_of(name, found, options))
    sys.exit(not right)


if __name__ == "__main__":
    main()
