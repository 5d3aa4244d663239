# Made from chapters/12b_scan.md by `make chapter`;
# edit the chapter, not this file.
"""A scan outside of `jit` as one program, for backends that write loops.

Reference: ``jax.lax.scan``, which compiles its loop in any case.
"""

from minijax.compilation import backend_name, compiled
from minijax.core import impl_rules
from minijax.jaxpr import ClosedJaxpr
from minijax.programs import stage
from minijax.remembering import remembered
from minijax.scan_primitive import bind_scan, groups, scan_p, stacked_aval, step_by_step


@remembered
def program_of_scan(step, length, reverse, num_consts, num_carry, unroll):
    """Return the program of one equation, a scan.

    Args:
      step: the `ClosedJaxpr` of a step.
      length, reverse, num_consts, num_carry, unroll: the other parameters of the scan.
    """
    how = {"length": length, "reverse": reverse, "unroll": unroll}
    consts, carry, rows = groups(step.in_avals, num_consts, num_carry)
    xs = [stacked_aval(row, length) for row in rows]
    step = ClosedJaxpr(step.jaxpr, step.consts)  # a memory must not hold its key

    def program(*args):
        operands = groups(args, num_consts, num_carry)
        return sum(bind_scan(step, *operands, **how), [])

    return stage(program, consts + carry + xs)


_parameters = "length", "reverse", "num_consts", "num_carry", "unroll"


def _run_whole(*args, jaxpr, **params):
    if backend_name() == "interpreter":
        return step_by_step(*args, jaxpr=jaxpr, **params)
    key = [params[name] for name in _parameters]
    return compiled(program_of_scan(jaxpr, *key))(*args)


impl_rules[scan_p] = _run_whole
