"""A release as strangers get it: wheels, on each Python, without the checkout.

    python -m tests.release_check               each Python of pyproject.toml
    python -m tests.release_check --smoke       without the tests
    python -m tests.release_check python3.12    this one

Wheels are built from what git has, as the workflow `release` builds them, and installed
in a fresh environment of each Python, with the newest NumPy and llvmlite that there are
for it. The processes have an empty home and no variables but `PATH` and those of pip
and of proxies. There `python -m minijax`, the example of README.md, `tests/smoke.py`
and chosen tests run, in a folder that has the tests and nothing else of the checkout.
Each Python that is not found is named.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOR_TESTS = ["pytest", "hypothesis", "ml_dtypes", "mpmath"]
CHOSEN = """
    arrays_array batching_vmap_trace control_flow_while_loops
    callbacks_callback_primitives dispatch_fastpath_gate dispatch_fastpath_functions
    dispatch_compilation_cache dispatch_word_language_object_layout
    dispatch_word_language_words diagnostics_tracebacks
    diagnostics_tracebacks_user_lines autojitting_autojit
    distributions_inversion_sampling forward_mode_jvp_trace
    jaxprs_jaxpr jitting_api cpu_backend_program_codegen_host_steps
    newcomer_programs prng_keys sharding_replicas
    reverse_mode_backward_pass_gradients scans_loops threads_environment training
    tree_util
""".split()
_KEPT = re.compile(r"PIP_\w+|\w+_proxy|SSL_CERT_FILE", re.IGNORECASE)

Run = Callable[..., str]


class Failed(Exception):
    """A command that failed, and what it said."""


def versions() -> list[str]:
    """The Pythons that the classifiers of pyproject.toml name."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    classifiers = tomllib.loads(text)["project"]["classifiers"]
    found = [re.fullmatch(r".* :: Python :: (3\.\d+)", each) for each in classifiers]
    return [match[1] for match in found if match]


def find(version: str) -> str | None:
    """A Python of this version: on the path, or one that pyenv has installed."""
    name = f"python{version}"
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    pyenv = sorted(kept.glob(f"{version}*/bin/{name}"))
    for each in [shutil.which(name), *map(str, pyenv)]:
        found = _itself(each) if each else None
        if found:
            return found
    return None


def check(python: str, tests: bool) -> None:
    """Build, install and run the package with one Python.

    Raises:
      Failed: what did not work, with its output.
    """
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder).resolve()
        run = runner(python, place)
        build(run, python, place)
        print("   ", run("env/bin/python", "-m", "minijax").replace("\n", "\n    "))
        (place / "readme.py").write_text(example(), encoding="utf-8")
        run("env/bin/python", "-W", "error", "readme.py")
        shutil.copy(place / "source" / "tests" / "smoke.py", place)
        print("   ", run("env/bin/python", "-W", "error", "smoke.py"))
        if tests:
            print("   ", run_tests(run, place))


def runner(python: str, place: Path) -> Run:
    """What runs a command in a folder, in an environment with an empty home."""
    (place / "home").mkdir()
    path = os.pathsep.join([str(Path(python).parent), os.defpath])
    kept = {k: v for k, v in os.environ.items() if _KEPT.fullmatch(k)}
    settings = kept | {"HOME": str(place / "home"), "PATH": path}

    def run(*command: str, cwd: Path = place) -> str:
        first = str(place / command[0]) if "/" in command[0] else command[0]
        made = subprocess.run(
            [first, *command[1:]],
            cwd=cwd, env=settings, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if made.returncode:
            raise Failed(f"{' '.join(command)}\n{made.stdout}")
        return made.stdout.strip()

    return run


def build(run: Run, python: str, place: Path) -> None:
    """Make wheels of what git has, and an environment with the package in it."""
    archive = place / "source.tar"
    made = ["git", "-C", str(ROOT), "archive", "-o", str(archive), "HEAD"]
    subprocess.run(made, check=True)
    shutil.unpack_archive(archive, place / "source", filter="data")
    pip = ["env/bin/python", "-m", "pip", "--disable-pip-version-check", "-q"]
    run(python, "-m", "venv", "env")
    run(*pip, "install", "setuptools>=77", "wheel")
    run(*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", "dist", "./source",
        "./source/book/helper")  # fmt: skip
    run(python, "-m", "venv", "--clear", "env")
    run(*pip, "install", *map(str, (place / "dist").glob("minijax_book-*.whl")))


def run_tests(run: Run, place: Path) -> str:
    """Run chosen tests on the installed package; return pytest's last line."""
    run("env/bin/python", "-m", "pip", "install", "-q", *FOR_TESTS)
    work = place / "work"
    shutil.copytree(place / "source" / "tests", work / "tests")
    shutil.copy(place / "source" / "pyproject.toml", work)  # settings of pytest
    names = [f"tests/test_{name}.py" for name in CHOSEN]
    said = run(
        "env/bin/python", "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "--import-mode=append", *names, cwd=work,
    )  # fmt: skip
    return said.splitlines()[-1]


def example() -> str:
    """The first program of README.md."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return text.split("```python\n", 1)[1].split("```", 1)[0]


def main(arguments: list[str] | None = None) -> int:
    """Check each Python; return how many failed, or 1 if there was none."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("pythons", nargs="*", help="in place of those that are found")
    parser.add_argument("--smoke", action="store_true", help="without the tests")
    options = parser.parse_args(arguments)
    named = {name: shutil.which(name) for name in options.pythons}
    found = named or {f"Python {each}": find(each) for each in versions()}
    wrong = []
    for name, python in found.items():
        print(f"{name}: {python or 'not found here'}", flush=True)
        start = time.monotonic()
        try:
            if python:
                check(python, not options.smoke)
                print(f"{name}: all is well, {time.monotonic() - start:.0f} s")
        except Failed as error:
            print(f"{name}: failed: {error}")
            wrong.append(name)
    return len(wrong) or not any(found.values())


def _itself(python: str) -> str | None:
    """Where a Python is, if it runs: a name on the path may be a stub of pyenv."""
    code = "import sys, venv, ensurepip; print(sys.executable)"
    made = subprocess.run([python, "-c", code], capture_output=True, text=True)
    return made.stdout.strip() if made.returncode == 0 else None


if __name__ == "__main__":
    sys.exit(main())
