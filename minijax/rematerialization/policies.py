"""What a derivative may keep: policies for `checkpoint`, names, residuals.

References: ``jax.checkpoint_policies``, ``jax.ad_checkpoint.checkpoint_name``,
``jax.ad_checkpoint.print_saved_residuals``.
"""

# Made from chapters/11_own_rules_rest.md by `make chapter`;
# edit the chapter, not this file.

import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from minijax import lax
from minijax.arrays.array import as_array_impl, shape_rules
from minijax.batching.vmap import vmap_rules
from minijax.core import Primitive, impl_rules
from minijax.diagnostics.tracebacks import api_boundary
from minijax.forward_mode.jvp import jvp_rules
from minijax.jaxprs.jaxpr import Literal, trace_to_jaxpr
from minijax.linearization.linearize import linearize_flat
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.tree_util import tree_map
from minijax.rematerialization.remat import checkpoint
from minijax.reverse_mode.backward_pass import transpose_rules

# What a derivative may keep: policies for `checkpoint`, and names for values.


def remat(
    fun: Callable[..., Any],
    *,
    prevent_cse: bool | Sequence[bool] = True,
    policy: Callable[..., bool] | None = None,
    static_argnums: int | tuple[int, ...] = (),
    concrete: Any = None,
) -> Callable[..., Any]:
    """Return what `checkpoint` returns.

    Reference: ``jax.remat``.
    """
    return checkpoint(
        fun,
        prevent_cse=prevent_cse,
        policy=policy,
        static_argnums=static_argnums,
        concrete=concrete,
    )


name_p = Primitive("name")
impl_rules[name_p] = lambda x, name: [as_array_impl(x)]
shape_rules[name_p] = lambda aval, name: [aval]
jvp_rules[name_p] = lambda primals, tangents, name: (
    name_p.bind_all(*primals, name=name),
    list(tangents),
)
vmap_rules[name_p] = lambda axis, args, dims, name: (
    name_p.bind_all(*args, name=name),
    list(dims),
)
transpose_rules.reasons[name_p] = (
    "Its tangent has no name, so no cotangent ever arrives at it."
)


def checkpoint_name(x: Any, name: str) -> Any:
    """Return a tree of arrays as it is, under a name that a policy can ask for.

    Args:
      x: a tree of arrays.
      name: the name.

    Reference: ``jax.ad_checkpoint.checkpoint_name``.
    """
    return tree_map(lambda leaf: name_p.bind(leaf, name=name), x)


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Keep everything that is needed, as if there were no `checkpoint`."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Keep nothing but the arguments, as without a policy."""
    return False


@dataclass(frozen=True)
class DotsSaveable:
    """Keep matrix products and convolutions, or products without axes of a batch."""

    only_if_no_batch_dims: bool

    def __call__(self, prim: Any, *_: Any, **params: Any) -> bool:
        if prim is not lax.dot_general_p:
            convolved = prim.name == "conv_general_dilated"
            return convolved and not self.only_if_no_batch_dims
        batched = any(params["dimension_numbers"][1])
        return not (self.only_if_no_batch_dims and batched)


@dataclass(frozen=True)
class SaveOnlyTheseNames:
    """Keep values with one of these names."""

    saveable_names: frozenset[str]

    def __call__(self, prim: Any, *_: Any, **params: Any) -> bool:
        return prim is name_p and params["name"] in self.saveable_names


@dataclass(frozen=True)
class SaveAnyNamesButThese:
    """Keep values with a name, except for these names."""

    names: frozenset[str]

    def __call__(self, prim: Any, *_: Any, **params: Any) -> bool:
        return prim is name_p and params["name"] not in self.names


def save_only_these_names(*names_which_can_be_saved: str) -> Callable[..., bool]:
    """Return the policy that keeps values with one of these names."""
    return SaveOnlyTheseNames(frozenset(names_which_can_be_saved))


def save_any_names_but_these(*names_not_to_save: str) -> Callable[..., bool]:
    """Return the policy that keeps values with a name that is none of these."""
    return SaveAnyNamesButThese(frozenset(names_not_to_save))


def save_anything_except_these_names(*names_not_to_save: str) -> Callable[..., bool]:
    """Return a policy that keeps everything; so it is in JAX 0.10.2.

    A value is there before it has its name, and without it.
    """
    return lambda *_, **__: True


def save_from_both_policies(
    policy_1: Callable[..., bool], policy_2: Callable[..., bool]
) -> Callable[..., bool]:
    """Return the policy that keeps what one of two policies keeps."""

    def policy(prim, *args, **params):
        wanted = [p(prim, *args, **params) for p in (policy_1, policy_2)]
        if not all(isinstance(keep, bool) for keep in wanted):
            raise ValueError(
                "The return value of the policies should be a boolean. Got: "
                f"{wanted[0]} and {wanted[1]}. Please write a custom policy function "
                "directly, rather than using this helper function."
            )
        return any(wanted)

    return policy


def _refuse_offloading(*_: Any, **__: Any) -> Callable[..., bool]:
    raise NotImplementedError(
        "Offloading moves residuals to another memory, and here arrays have one "
        "memory. Keep them with dots_with_no_batch_dims_saveable or "
        "save_only_these_names, or let them be computed again."
    )


class _Policies(types.SimpleNamespace):
    @api_boundary
    def __getattr__(self, name):
        close = import_module("difflib").get_close_matches(name, vars(self), 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise AttributeError(f"There is no checkpoint policy {name!r}.{hint}")


checkpoint_policies = _Policies(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=DotsSaveable(False),
    checkpoint_dots=DotsSaveable(False),
    dots_with_no_batch_dims_saveable=DotsSaveable(True),
    checkpoint_dots_with_no_batch_dims=DotsSaveable(True),
    offload_dot_with_no_batch_dims=_refuse_offloading,
    save_anything_except_these_names=save_anything_except_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=save_from_both_policies,
    save_and_offload_only_these_names=_refuse_offloading,
)


# The residuals of a function: what its derivative keeps, and where it was made.


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print what the derivative of a function keeps, a line for each array.

    Args:
      f: a function of trees of arrays.
      *args, **kwargs: its arguments.

    Reference: ``jax.ad_checkpoint.print_saved_residuals``.
    """
    call = FlatCall("saved_residuals", f, args, kwargs)
    for aval, source in _saved_residuals(call):
        print(aval.str_short(), source)


def _saved_residuals(call):
    """Return pairs of an abstract value and a text."""

    def residuals(*flat):
        outs, _, consts = linearize_flat(call, flat)
        return consts

    jaxpr, _ = trace_to_jaxpr(residuals, call.avals)
    kept = {*[atom for atom in jaxpr.outvars if not isinstance(atom, Literal)]}
    literals = [atom for atom in jaxpr.outvars if isinstance(atom, Literal)]
    found = [(atom.aval, "from a literal") for atom in literals]
    found += [(v.aval, "from a constant") for v in jaxpr.constvars if v in kept]
    found += [
        (var.aval, f"from the argument {name}")
        for var, name in zip(jaxpr.invars, call.names())
        if var in kept
    ]
    made = [(eqn, var) for eqn in jaxpr.eqns for var in eqn.outvars if var in kept]
    return found + [(var.aval, _maker(eqn)) for eqn, var in made]


def _maker(eqn):
    """Return what an equation is called, and where it was written."""
    name, where = eqn.params.get("name"), f" from {eqn.source}" if eqn.source else ""
    if eqn.primitive.name == "name":
        return f"named {name!r}{where}"
    if eqn.primitive.name == "jit":
        return f"output of jitted function {name!r}{where}"
    return f"output of {eqn.primitive.name}{where}"
