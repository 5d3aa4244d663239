"""Command lines of the batteries: which options there are, and what is said at the end.

A battery is a module of this folder that can be run: python -m tests.vector_cases.
"""

import argparse
import itertools
import os

LONG = bool(os.environ.get("LONG"))  # `make test LONG=1`: all that tests can take


def options_of(about, arguments=None, **defaults):
    """The options of a command line.

    Args:
      about: the docstring of a battery, whose first line says what it does.
      arguments: words, those of the command line by default.
      defaults: of the options: numbers, texts, lists of texts, or False for a switch.
    """
    parser = argparse.ArgumentParser(description=about.partition("\n")[0])
    for name, default in defaults.items():
        kind = {"nargs": "+"} if isinstance(default, list) else {"type": type(default)}
        how = {"action": "store_true"} if default is False else kind
        parser.add_argument(f"--{name}", default=default, **how)
    return parser.parse_args(arguments)


def blocks(few, many, start=0):
    """Numbers of blocks of random programs: few, or with `LONG=1` many."""
    return range(start, start + (many if LONG else few))


def some(cases, of):
    """One of so many cases, others of the next row; with `LONG=1` all."""
    kept = [case for n, case in enumerate(cases) if (n + n // 7) % of == 0]
    return list(cases) if LONG else kept


def paired(firsts, seconds):
    """Pairs for `parametrize`: each of both at least once; with `LONG=1` all pairs."""
    firsts, seconds = list(firsts), list(seconds)
    if LONG:
        return list(itertools.product(firsts, seconds))
    both = zip(itertools.cycle(firsts), itertools.cycle(seconds), strict=False)
    return list(itertools.islice(both, max(len(firsts), len(seconds))))


def turned(firsts, seconds, each):
    """Pairs: each first with so many seconds, the next ones for the next; or all."""
    firsts, seconds = list(firsts), list(seconds)
    if LONG:
        return list(itertools.product(firsts, seconds))
    found = []
    for number, first in enumerate(firsts):
        start = number * each % len(seconds)
        found += [(first, second) for second in (seconds * 2)[start : start + each]]
    return found


def reported(compared, wrong):
    """Print what differs, and what was compared; return whether anything differs."""
    print(*wrong, sep="\n\n")
    print(f"{compared}, {len(wrong)} differences")
    return bool(wrong)
