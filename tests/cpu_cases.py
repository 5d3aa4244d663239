"""Programs as machine code beside the interpreter, in a process of their own.

python -m tests.cpu_cases --every 9              programs of all primitives and dtypes
python -m tests.cpu_cases --control --every 9    programs with loops and branches
"""

import sys
import warnings
from itertools import islice

import minijax
from minijax.jitting.compilation import Interpreter, backends, dce_for_compilation
from tests import emission_cases
from tests.commands import options_of, reported
from tests.kernel_cases import alike, programs
from tests.red_zones import RedZones


def compare(backend, name, f, operands):
    """What is wrong with a program on a backend, a list; None if it is no program."""
    closed = emission_cases.written_down(f, operands)
    if closed is None:
        return None
    closed = dce_for_compilation(closed)
    with minijax.config.override("minijax_backend", "interpreter"):
        wanted = Interpreter(closed)(*operands)
    try:
        with RedZones() as zones:
            found = backends[backend](closed)(*operands)
    except Exception as error:
        return [f"{name}: {type(error).__name__}: {error}"]
    return [f"{name}: {problem}" for problem in zones.problems] + [
        f"{name}: {ours} instead of {other}"
        for ours, other in zip(found, wanted, strict=True)
        if repr(ours.aval) != repr(other.aval) or not alike(ours, other, least=0.01)
    ]


def compare_all(backend, control, every, first=0):
    """How many programs were compared, and what is wrong with them."""
    compared, wrong = 0, []
    for wide in (False, True):
        with minijax.enable_x64(wide), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cases = emission_cases.control() if control else programs(1)
            for case in islice(cases, first, None, every):
                found = compare(backend, *case)
                compared += found is not None
                wrong += found or []
    return compared, wrong


def main():
    """Compare programs; 1 if something differs."""
    options = options_of(__doc__, control=False, every=1, first=0, backend="cpu")
    arguments = options.control, options.every, options.first
    compared, wrong = compare_all(options.backend, *arguments)
    return reported(f"{compared} programs", wrong)


if __name__ == "__main__":
    sys.exit(main())
