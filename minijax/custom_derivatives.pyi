# Made from the chapters by `make chapters`; edit them, not this file.

from minijax import closure_convert as closure_convert
from minijax import custom_gradient as custom_gradient
from minijax import custom_jvp as custom_jvp
from minijax import custom_vjp as custom_vjp
from minijax.own_rules.cotangent_rules import custom_vjp_call_p as custom_vjp_call_p
from minijax.own_rules.linear_calls import linear_call as linear_call
from minijax.own_rules.symbolic_zeros import CustomVJPPrimal as CustomVJPPrimal
from minijax.own_rules.symbolic_zeros import SymbolicZero as SymbolicZero
from minijax.own_rules.symbolic_zeros import custom_vjp_primal_tree_values as custom_vjp_primal_tree_values
from minijax.own_rules.symbolic_zeros import zero_from_primal as zero_from_primal
from minijax.own_rules.tangent_rules import custom_jvp_call_p as custom_jvp_call_p
