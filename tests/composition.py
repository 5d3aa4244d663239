"""Compares stacks of transformations with simpler stacks, and with real JAX.

    python -m tests.composition            # minijax against itself
    python -m tests.composition --jax      # minijax against JAX
    python -m tests.composition --own module:name [--every 16] [--program softmax]

run everything that the tests run, and print the counts. The last is for a
transformation of your own that changes no values, by its nature or by its parameters:
stacks with it have to agree with those without it.
"""

import sys
from collections import Counter
from functools import cache, partial
from importlib import import_module
from itertools import count

import numpy as np

import minijax
from tests import corpus
from tests.commands import options_of

PROGRAMS = corpus.programs(minijax)
TABLE = corpus.transformations(minijax)
PART = 200


@cache
def parts(name):
    """Return the stacks to try on a program in parts, those of one meaning together."""
    stacks = sorted(corpus.stacks_of(name), key=corpus.meaning)
    cuts = range(0, len(stacks), PART)
    return [stacks[cut : cut + PART] for cut in cuts]


CASES = [(name, i) for name in PROGRAMS for i in range(len(parts(name)))]


@cache
def own_answer(name, stack):
    """Return what minijax computes in 64 bits, or the error."""
    return computed(name, stack)


def computed(name, stack):
    """Return what minijax computes, or the error."""
    f, point = PROGRAMS[name]
    try:
        x = minijax.numpy.asarray(point)
        return minijax.numpy.asarray(corpus.apply(TABLE, stack, f)(x))
    except Exception as error:  # to be compared with another error
        return error


def jax_answers(name, stacks):
    """Return what JAX computes for each stack, or the error.

    JAX traces each of them; what it does not refuse is compiled as one program.
    """
    jax = import_module("jax")
    (f, point), table = theirs()[name], their_table()
    x = jax.numpy.asarray(point)
    answers, running = {}, {}
    for stack in dict.fromkeys(stacks):
        g = corpus.apply(table, stack, f)
        try:
            jaxpr = jax.make_jaxpr(lambda x, g=g: jax.numpy.asarray(g(x)))(x)
            if "custom_lin" in str(jaxpr):  # refused when it is compiled
                jax.jit(g)(x)
            running[stack] = corpus.as_function(jax)(jaxpr)
        except Exception as error:
            answers[stack] = error
    run = jax.jit(lambda x: [g(x)[0] for g in running.values()])
    return answers | dict(zip(running, run(x)))


@cache
def theirs():
    return corpus.programs(import_module("jax"))


@cache
def their_table():
    return corpus.transformations(import_module("jax"))


def difference(ours, wanted, types, rtol=1e-7, atol=1e-9):
    """Say how two answers differ, or return None; `types` adds dtype and weak type."""
    if isinstance(ours, Exception) or isinstance(wanted, Exception):
        same = type(ours).__name__ == type(wanted).__name__
        return None if same else f"{short(ours)}\n  but wanted {short(wanted)}"
    facts = [(x.shape, x.dtype, x.weak_type)[: 1 + 2 * types] for x in (ours, wanted)]
    if facts[0] != facts[1]:
        return f"{facts[0]}, but wanted {facts[1]}"
    ours, wanted = np.asarray(ours), np.asarray(wanted)
    same = np.allclose(ours, wanted, rtol=rtol, atol=atol, equal_nan=True)
    return None if same else f"{ours}, but wanted {wanted}"


def short(answer):
    """Return the class and the beginning of an error, or the value."""
    if not isinstance(answer, Exception):
        return repr(answer)
    return f"{type(answer).__name__}: {str(answer)[:300]}"


def against_itself(name, part, counts=None, every=1):
    """Yield the stacks that differ from their simplest equivalents, as texts.

    Args:
      name, part: which stacks, as in `CASES`.
      counts: of values and refusals, to be added to.
      every: 64 for every 64th stack only, which are others for the next program.
    """
    counts = Counter() if counts is None else counts
    with minijax.enable_x64():
        for stack in parts(name)[part][first(name, every) :: every]:
            ours, wanted = (
                own_answer(name, stack),
                own_answer(name, corpus.simplest(stack)),
            )
            if isinstance(ours, ValueError) and corpus.irreversible(stack):
                wanted = ours
            counts["refused" if isinstance(ours, Exception) else "values"] += 1
            if problem := difference(ours, wanted, types=False):
                yield f"{name} under {stack}: {problem}"


def against_jax(name, part, counts=None, every=1):
    """Yield the stacks that differ from real JAX, as texts; see `against_itself`.

    It is every 18th meaning that `every=18` takes, with all stacks that have it.
    """
    jax = import_module("jax")
    counts = Counter() if counts is None else counts
    with jax.enable_x64(True), minijax.enable_x64():
        meanings = dict.fromkeys(map(corpus.meaning, parts(name)[part]))
        answers = jax_answers(name, [*meanings][first(name, every) :: every])
        stacks = [s for s in parts(name)[part] if corpus.meaning(s) in answers]
        for stack in stacks:
            ours, wanted = own_answer(name, stack), answers[corpus.meaning(stack)]
            counts["refused" if isinstance(wanted, Exception) else "values"] += 1
            if problem := difference(ours, wanted, types=True):
                yield f"{name} under {stack}: {problem}"


def against_without(own, name, part, counts=None, every=1):
    """Yield the stacks that differ with a transformation in them, as texts.

    Args:
      own: from functions to functions that return the same.
      name, part, counts, every: as of `against_itself`; it stands at each place of a
        stack in turn.
    """
    counts, TABLE["own"] = Counter() if counts is None else counts, own
    with minijax.enable_x64():
        for stack in parts(name)[part][first(name, every) :: every]:
            for i in range(len(stack) + 1):
                longer = (*stack[:i], "own", *stack[i:])
                ours, wanted = computed(name, longer), own_answer(name, stack)
                counts["refused" if isinstance(ours, Exception) else "values"] += 1
                if problem := difference(ours, wanted, types=False):
                    yield f"{name} under {longer}: {problem}"


def first(name, every):
    """Where to begin for a program, so that in turn all stacks are taken."""
    return [*PROGRAMS].index(name) % every


def in_32_bits(name, every=1):
    """Yield the single transformations that differ from real JAX in 32 bits."""
    stacks = [(), *corpus.stacks(1)[first(name, every) :: every]]
    answers = jax_answers(name, stacks)
    for stack in stacks:
        ours = computed(name, stack)
        if problem := difference(ours, answers[stack], True, rtol=2e-4, atol=1e-5):
            yield f"{name} under {stack}: {problem}"


def main(arguments=None):
    """Run from the command line."""
    options = options_of(__doc__, arguments, jax=False, program="", own="", every=1)
    compare = against_jax if options.jax else against_itself
    if options.own:
        module, _, name = options.own.partition(":")
        compare = partial(against_without, getattr(import_module(module), name))
    counts, number = Counter(), count()
    for name, part in CASES:
        if options.program in ("", name):
            for text in compare(name, part, counts, options.every):
                next(number)
                print(text, flush=True)
        own_answer.cache_clear()
    bad = next(number)
    print(*(f"{k}: {v}" for k, v in corpus.count().items()), sep="\n")
    print(f"compared: {counts['values']} values, {counts['refused']} refusals")
    print(f"disagreements: {bad}")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
