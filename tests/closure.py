"""All stacks of transformations, control flow, own rules and forgetting to depth 3.

    python -m tests.closure                    # beside straight-line code
    python -m tests.closure --jax [--program softmax] [--every 10 --seed 3] [--depth 2]

run the stacks on the programs of `corpus.BASES`, and the gradient of each (so that the
values of each stack, and its gradients, are seen), and print the counts.
"""

import sys
from collections import Counter
from functools import cache
from importlib import import_module

import numpy as np

import minijax
from tests import composition, corpus, rules_corpus
from tests.commands import options_of

NAMES = ("jvp", "vjp", "vmap", "jit", "custom_jvp", "custom_vjp", "checkpoint")
NAMES = (*NAMES, "cond", "scan", "while")


def names():
    """Return the names of what is stacked: all that this package has."""
    return tuple(n for n in NAMES if n != "checkpoint" or hasattr(minijax, n))


@cache
def sample(every, seed):
    """Return stacks of depth 3 at most: all with a rule, or one of so many.

    Those without any rule are among the stacks of `tests.composition`.
    """
    found = [s for s in corpus.stacks(3, names()) if {*s} & {*rules_corpus.NAMES}]
    number = -(-len(found) // every)
    chosen = np.random.default_rng(seed).permutation(len(found))[:number]
    return sorted((found[i] for i in chosen), key=corpus.meaning)


def refused(stack):
    """Whether the stack may want a rule backwards where derivatives run forwards."""
    after = stack[stack.index("custom_vjp") :] if "custom_vjp" in stack else ()
    return {"jvp", "custom_jvp"} & {*after}


def with_gradients(stacks):
    """Return the stacks, and those which give their gradients."""
    return [each for stack in stacks for each in (stack, (*stack, "vjp"))]


def against_itself(name, stacks, counts):
    """Yield the stacks that differ from straight-line code, as texts."""
    with minijax.enable_x64():
        for stack in with_gradients(stacks):
            ours = composition.own_answer(name, stack)
            wanted = composition.own_answer(name, corpus.simplest(stack))
            backwards = isinstance(ours, ValueError) and corpus.irreversible(stack)
            forwards = isinstance(ours, TypeError) and refused(stack)
            if backwards or forwards:
                wanted = ours
            counts["refused" if isinstance(ours, Exception) else "values"] += 1
            if problem := composition.difference(ours, wanted, types=False):
                yield f"{name} under {stack}: {problem}"


def against_jax(name, stacks, counts):
    """Yield the stacks that differ from real JAX, as texts."""
    jax = import_module("jax")
    stacks = with_gradients(stacks)
    with jax.enable_x64(True), minijax.enable_x64():
        answers = composition.jax_answers(name, map(corpus.meaning, stacks))
        for stack in stacks:
            ours = composition.own_answer(name, stack)
            wanted = as_refused_at_once(answers[corpus.meaning(stack)])
            counts["refused" if isinstance(wanted, Exception) else "values"] += 1
            problem = composition.difference(ours, wanted, types=True)
            if problem and known(name, stack, ours, wanted):
                counts["known"] += 1
            elif problem:
                yield f"{name} under {stack}: {problem}"


def as_refused_at_once(answer):
    """JAX's error, as when nothing is staged: staged, jvp of jvp has another class."""
    late = "'custom_lin' not implemented" in str(answer)
    return TypeError(str(answer)) if late else answer


def known(name, stack, ours, wanted):
    """Whether this is one of the differences that are understood.

    JAX stops in a check of its own, as it writes down what is linearised; or refuses a
    derivative forwards in a branch, which we refuse if that branch is taken; or forgets
    a rule.
    """
    if isinstance(wanted, AssertionError):
        return "non-canonical constant" in str(wanted)
    if isinstance(wanted, TypeError):
        return "cond" in stack and refused(stack) and not isinstance(ours, Exception)
    return jax_forgets_rule(name, stack, ours)


def jax_forgets_rule(name, stack, ours):
    """Whether we have the value that JAX has for straight-line code alone.

    In its second derivatives of a loop JAX 0.10.2 leaves out rules of a `custom_jvp`
    within it: what is known is partially evaluated, which drops them.
    """
    if "scan" not in stack or "custom_jvp" not in stack[: stack.index("scan")]:
        return False
    straight = corpus.simplest(stack)
    [wanted] = composition.jax_answers(name, [straight]).values()
    return not composition.difference(ours, wanted, types=False)


def texts(package, stack, name="sin times x"):
    """Return the text of a stack's program, or the class of the error."""
    f, point = corpus.programs(package)[name]
    g = corpus.apply(corpus.transformations(package), stack, f)
    try:
        return str(package.make_jaxpr(g)(np.float32(point)))
    except Exception as error:
        return type(as_refused_at_once(error)).__name__


def main(arguments=None):
    """Run from the command line."""
    options = options_of(
        __doc__, arguments, jax=False, program="", every=1, seed=0, part=60
    )
    compare, counts, bad = against_jax if options.jax else against_itself, Counter(), 0
    stacks = sample(options.every, options.seed)
    for name in corpus.BASES:
        for cut in range(0, len(stacks), options.part):
            if options.program in ("", name):
                for text in compare(name, stacks[cut : cut + options.part], counts):
                    bad += 1
                    print(text, flush=True)
        composition.own_answer.cache_clear()
    print(f"{len(names())} transformations, {len(stacks)} stacks, ", end="")
    print(f"{counts['values']} values, {counts['refused']} refusals, ", end="")
    print(f"{counts['known']} known differences, {bad} disagreements")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
