"""Of a test with many cases each commit meets a share, so that all fits into minutes.

    MINIJAX_TEST_TURNS=3 python -m pytest tests  # a third, which the commit chooses
    MINIJAX_TEST_TURNS=3 MINIJAX_TEST_TURN=0 python -m pytest tests  # the first
"""

import os
import subprocess
from pathlib import Path
from zlib import crc32

MANY = 8  # cases of one function; with fewer each commit meets all


def commit():
    """Return the hash of this commit as a number; 0 where there is no git."""
    ask = ["git", "-C", Path(__file__).parent, "rev-parse", "HEAD"]
    try:
        found = subprocess.run(ask, capture_output=True, text=True).stdout
    except FileNotFoundError:
        return 0
    return int(found or "0", 16)


def by_turns(items):
    """Return the tests without the cases that are other commits' to meet.

    Of a function with many cases it keeps every third, say, in an order that has
    nothing to do with their parameters. Laws of the book meet all pages.
    """
    turns = int(os.environ.get("MINIJAX_TEST_TURNS", "1"))
    if turns == 1:
        return items
    turn = int(os.environ.get("MINIJAX_TEST_TURN", "-1"))
    turn = (commit() if turn < 0 else turn) % turns
    functions = {}
    for item in items:
        functions.setdefault(item.nodeid.partition("[")[0], []).append(item.nodeid)
    kept = set()
    for name, cases in functions.items():
        if len(cases) < MANY or "/laws/" in name:
            kept.update(cases)
        else:
            cases.sort(key=lambda case: crc32(case.encode()))
            kept.update(cases[turn::turns])
    return [item for item in items if item.nodeid in kept]
