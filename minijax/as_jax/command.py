"""The command: run a script or a module in which ``import jax`` means minijax."""

# Made from chapters/42_as_jax_rest.md by `make chapter`;
# edit the chapter, not this file.

import os
import runpy
import sys

from minijax.as_jax.aliases import VERSION, install
from minijax.as_jax.report import Report

USAGE = """usage: python -m minijax.as_jax [--report] [--version X] SCRIPT [ARGUMENTS]
       python -m minijax.as_jax [--report] [--version X] -m MODULE [ARGUMENTS]
       python -m minijax.as_jax [--report] [--version X] -c PROGRAM [ARGUMENTS]

Run a program in which `import jax` means minijax.

  --report     say at the end what was asked for in vain, and what took long
  --version X  the version of JAX that the program is written for"""


def run(words):
    """Run a program as the words of a command line say.

    Args:
      words: what follows ``python -m minijax.as_jax``.

    Raises:
      SystemExit: as the program says, or with a sentence if the words are wrong.
    """
    words, wants_report, version = [*words], False, VERSION
    while words and words[0] in ("--report", "--version"):
        wants_report |= words[0] == "--report"
        if words.pop(0) == "--version":
            version = words.pop(0) if words else None
    if not words or (words[0] in ("-m", "-c") and len(words) < 2):
        raise SystemExit(USAGE)
    if words[0] in ("-h", "--help"):
        raise SystemExit(print(USAGE))
    try:
        install(version)
    except (RuntimeError, ValueError) as error:
        raise SystemExit(f"minijax.as_jax: {error}") from None
    os.environ["MINIJAX_AS_JAX"] = "1"  # for processes that the program starts
    if not wants_report:
        return run_main(words)
    report = Report()
    try:
        with report:
            run_main(words)
    finally:
        print(report)


def run_main(words):
    """Run a script, a module or a program as the main one, with its arguments."""
    kind = words.pop(0) if words[0] in ("-m", "-c") else None
    target, sys.argv = words[0], [*words]
    if kind == "-m":
        if target in ("pytest", "py.test"):
            sys.argv[1:1] = ["-p", "minijax.as_jax"]
        runpy.run_module(target, run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv[0], sys.path[0] = "-c", ""
        exec(compile(target, "<string>", "exec"), vars(sys.modules["__main__"]))
    elif not os.path.exists(target):
        raise SystemExit(f"minijax.as_jax: there is no file {target!r}.\n{USAGE}")
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(target))
        runpy.run_path(target, run_name="__main__")
