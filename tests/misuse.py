"""Calls with one mistake: what Python binds wrongly, and a wrong value in each place.

python -m tests.misuse --every 1 --seed 0    # all calls; --every 4: some

`bindings` misuses the signature of each public function. `calls` takes the calls of
`tests.static_integers`, all of which work, and puts each of `VALUES` in the place of
each of their arguments. A call answers, or is refused by a sentence of the package.
"""

import ast
import inspect
import os
import sys
import traceback
import warnings

import minijax
from tests import bad_values, static_integers
from tests.commands import options_of, reported

VALUES = {
    "None": None, "text": "x", "object": object(), "uneven": [[1], [1, 2]], "half": 1.5,
    "far axis": -99, "2**31": 2**31, "2**63 - 1": 2**63 - 1, "2**63": 2**63,
    "-2**63": -(2**63), "10**30": 10**30,
}  # fmt: skip
# Calls that make so many numbers of Python as the argument says, as in JAX.
ENDLESS = ("broadcast_to_rank(",)
PACKAGE = os.path.dirname(minijax.__file__)
PLAIN = inspect.Parameter.POSITIONAL_OR_KEYWORD


def bindings(function):
    """Yield calls that Python refuses: a title, arguments, keywords, and a word.

    The word is the name of the argument that is wrong, or "".
    """
    given = [*inspect.signature(function).parameters.values()]
    needed = [p for p in given if p.kind <= PLAIN and p.default is p.empty]
    places = [p for p in given if p.kind <= PLAIN]
    kinds = {p.kind for p in given}
    named = {p.name: 1.0 for p in given if p.kind == p.KEYWORD_ONLY}
    named = {k: v for k, v in named.items() if needs(function, k)}
    ones = [1.0] * len(needed)
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        yield "unknown", ones, {**named, "nosuch": 1}, "nosuch"
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        yield "too many", [1.0] * (len(places) + 1), named, ""
    if needed:
        yield "missing", ones[:-1], named, needed[-1].name
    for name in named:
        yield "missing", ones, {k: 1.0 for k in named if k != name}, name
    if needed and places[0].kind == PLAIN:
        yield "twice", ones, {**named, places[0].name: 1.0}, places[0].name
    if needed and places[0].kind < PLAIN and inspect.Parameter.VAR_KEYWORD not in kinds:
        yield "by name", [], {**named, **{p.name: 1.0 for p in needed}}, needed[0].name


def told_by_us(trace):
    """Return whether a line of the package raises an error of its own words."""
    return (traceback.extract_tb(trace)[-1].line or "").startswith("raise")


def needs(function, keyword):
    """Return whether a keyword has no default."""
    parameter = inspect.signature(function).parameters[keyword]
    return parameter.default is parameter.empty


def binding_fault(name, function, call):
    """Return what is wrong with the refusal of such a call, or None."""
    title, args, named, word = call
    try:
        function(*args, **named)
    except TypeError as error:
        told, trace = str(error), error.__traceback__
        while trace.tb_next:
            trace = trace.tb_next
        if not called(name, function, told) or word not in told:
            return f"{name}, {title}: {told}"
        place = trace.tb_frame.f_code.co_filename
        inside = place.startswith(PACKAGE) and not told_by_us(trace)
        return f"{name}, {title}: {told} ({place})" if inside else None
    except Exception as error:
        return f"{name}, {title}: {error!r}"
    return f"{name}, {title}: no error"


def called(name, function, told):
    """Return whether a sentence names a function; one with two names, by either."""
    return name.rsplit(".", 1)[-1] in told or f"{function.__name__}()" in told


def binding_faults():
    """Return what is wrong with how functions refuse such calls, and how many."""
    found, met = [], 0
    for name, function in bad_values.functions():
        if not inspect.isfunction(function):
            continue
        for call in bindings(function):
            met += 1
            if told := binding_fault(name, function, call):
                found.append(told)
    return found, met


def calls(seed=0, every=1):
    """Yield a name of the value and the text of each call, in which it is `n`."""
    for number, call in enumerate(static_integers.CALLS):
        if (number + seed) % every == 0:
            tree = ast.parse(call, mode="eval").body
            yield from ((value, text) for text in misused(tree) for value in VALUES)


def misused(tree):
    """Yield texts of a call in which one argument is ``bad``."""
    bad = ast.Name("bad")
    for place in range(len(tree.args)):
        args = [bad if i == place else arg for i, arg in enumerate(tree.args)]
        yield ast.unparse(ast.Call(tree.func, args, tree.keywords))
    for place, keyword in enumerate(tree.keywords):
        named = [*tree.keywords]
        named[place] = ast.keyword(keyword.arg, bad)
        yield ast.unparse(ast.Call(tree.func, tree.args, named))


def outcome(jax, text, value, known):
    """Return what a call raises while it is traced, or None."""
    names = {**known, "n": 1, "bad": VALUES[value]}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            jax.eval_shape(lambda: eval(text, names))
    except Exception as error:
        return error
    return None


def faults(every, seed=0):
    """Return which calls meet a line inside of the package, and how many there were."""
    known, found, met = static_integers.operands(minijax), [], 0
    with bad_values.whole_tracebacks():
        for value, text in calls(seed, every):
            if "*" in value and any(word in text for word in ENDLESS):
                continue
            met += 1
            names = {**known, "n": 1, "bad": VALUES[value]}

            def call(bad, text=text, names=names):
                return minijax.eval_shape(lambda: eval(text, names))

            if told := bad_values.fault(call, ["bad"], {}, names):
                found.append(f"{text} with {value}: {told}")
    return found, met


def main(arguments=None):
    options = options_of(__doc__, arguments, seed=0, every=1)
    bound, bindings_met = binding_faults()
    wrong, met = faults(options.every, options.seed)
    return reported(f"{met + bindings_met} calls", bound + wrong)


if __name__ == "__main__":
    sys.exit(main())
