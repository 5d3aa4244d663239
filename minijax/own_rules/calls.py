"""The calls with rules of their own: to run one is to run the program that it calls.

Reference: the lowering rules in ``jax._src.custom_derivatives``.
"""

# Made from chapters/11_own_rules_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.forgetting.rematerialisation import remat_p
from minijax.own_rules.batch_rules import custom_vmap_p
from minijax.own_rules.cotangent_rules import custom_vjp_call_p
from minijax.own_rules.implicit_solutions import linear_solve_p
from minijax.own_rules.linear_calls import linear_call_p
from minijax.own_rules.tangent_rules import custom_jvp_call_p

CALLS = (
    remat_p,
    custom_jvp_call_p,
    custom_vjp_call_p,
    custom_vmap_p,
    linear_call_p,
    linear_solve_p,
)
