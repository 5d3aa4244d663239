"""Functions that are exported: their text, and what is known of their types.

Reference: ``jax.export``.
"""

# Made from chapters/40_export_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import tangent_dtype
from minijax.arrays.settings import config
from minijax.exporting.control_flow import SAME
from minijax.exporting.elementwise import SPELLED
from minijax.exporting.places import KINDS
from minijax.exporting.programs import module_text
from minijax.exporting.random_words import BY_LAX
from minijax.exporting.rearranging import LISTED
from minijax.exporting.reasons import REASONS
from minijax.exporting.sliding import window_attributes
from minijax.exporting.sorting import top_k
from minijax.jaxprs.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.jaxprs.shape_structs import ShapeDtypeStruct, struct_of
from minijax.jitting.api import jit
from minijax.lax.creation import convert_element_type
from minijax.pytrees.treedefs import PyTreeDef, tree_flatten
from minijax.reverse.backwards import vjp

# The rules of all families are in the table when a text is asked for: to name something
# of each module is to import it.
_FAMILIES = SPELLED, LISTED, SAME, top_k, KINDS, window_attributes, BY_LAX, REASONS


@dataclass(frozen=True, eq=False)
class Exported:
    """A function for arguments of certain types, as a text that compilers read.

    Attributes:
      fun_name: the name of the function.
      in_tree, out_tree: the structures of ``(args, kwargs)`` and of the result.
      in_avals, out_avals: the abstract values of their leaves.
      platforms: the names of those that the text is for.
      jaxpr: the program.
      x64: whether 64 bits were on when it was exported.
      nr_devices: 1; a program of parts is not exported.
      disabled_safety_checks: empty; there are no such checks.

    Reference: ``jax.export.Exported``.
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple
    out_tree: PyTreeDef
    out_avals: tuple
    platforms: tuple[str, ...]
    jaxpr: ClosedJaxpr
    x64: bool = False
    nr_devices = 1
    disabled_safety_checks = ()

    def mlir_module(self) -> str:
        """Return the text of the module, in StableHLO.

        Raises:
          NotImplementedError: if the program has a primitive that the language lacks.
        """
        return module_text(self.jaxpr, self.fun_name)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the function here, in our own machine, on arguments of these types.

        It runs with 64 bits, or without them, as it was exported.

        Raises:
          ValueError: if the arguments have another structure, shape or dtype.
        """
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self.in_tree:
            raise ValueError(
                f"{self.fun_name} was exported for arguments {self.in_tree}, not "
                f"{tree}."
            )
        for i, (x, aval) in enumerate(zip(leaves, self.in_avals)):
            given = typeof(x)
            if (given.shape, given.dtype) != (aval.shape, aval.dtype):
                raise ValueError(
                    f"{self.fun_name} was exported for {aval.str_short()} as leaf {i} "
                    f"of its arguments, not for {given.str_short()}."
                )
        with config.override("jax_enable_x64", self.x64):
            leaves = list(map(_as_strong, leaves, self.in_avals))
            return self.out_tree.unflatten(jit(jaxpr_as_fun(self.jaxpr))(*leaves))

    def in_shardings_jax(self, mesh: Any) -> tuple[None, ...]:
        """Return None for each argument's leaf: a program of parts is not exported."""
        return (None,) * len(self.in_avals)

    def out_shardings_jax(self, mesh: Any) -> tuple[None, ...]:
        """Return None for each leaf of the result, see `in_shardings_jax`."""
        return (None,) * len(self.out_avals)

    def has_vjp(self) -> bool:
        """Return True: the program is known, so its derivative can be exported."""
        return True

    def vjp(self) -> "Exported":
        """Return the pullback, exported: from leaves and cotangents to cotangents.

        Its arguments are the leaves of the function's arguments, followed by the
        cotangents of the leaves of its result; its result is a tuple.
        """
        fun, count = jaxpr_as_fun(self.jaxpr), len(self.in_avals)

        def fun_vjp_jax(*args):  # the name that it has in JAX
            return vjp(fun, *args[:count])[1](list(args[count:]))

        with config.override("jax_enable_x64", self.x64):
            structs = map(struct_of, self.in_avals)
            return export(jit(fun_vjp_jax))(*structs, *map(_cotangent, self.out_avals))


def _as_strong(x, aval):
    """Return a value that is as weak as the one for which the program was written."""
    return x if aval.weak_type else convert_element_type(x, aval.dtype)


def _cotangent(aval):
    return ShapeDtypeStruct(aval.shape, tangent_dtype(aval.dtype))


def default_export_platform() -> str:
    """Return the platform for which functions are exported here."""
    return "cpu"


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[Any] = (),
) -> Callable[..., Exported]:
    """Return a function that exports a jitted function, given arguments or types.

    Args:
      fun_jit: what `jit` has returned.
      platforms: names to note in the result. Our texts name no platform, so that one
        text is for all.
      disabled_checks: accepted as in JAX; there are no such checks here.

    Raises:
      ValueError: if the function is not jitted.

    Reference: ``jax.export.export``.
    """
    if not hasattr(fun_jit, "trace"):
        raise ValueError(
            f"export takes a function that jit has returned, not {fun_jit!r}. Write "
            "export(jit(f))."
        )
    names = tuple(platforms) if platforms else (default_export_platform(),)

    def exporting(*args, **kwargs):
        traced = fun_jit.trace(*args, **kwargs)
        closed = traced.program
        return Exported(
            traced.fun_name, traced.in_tree, tuple(closed.in_avals), traced.out_tree,
            tuple(closed.out_avals), names, closed, config.jax_enable_x64,
        )  # fmt: skip

    return exporting
