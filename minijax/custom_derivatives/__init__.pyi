# Made from the chapters by `make chapters`; edit them, not this file.

from minijax import closure_convert as closure_convert
from minijax import custom_gradient as custom_gradient
from minijax import custom_jvp as custom_jvp
from minijax import custom_vjp as custom_vjp
from minijax.custom_derivatives.custom_jvp_vjp import custom_jvp_call_p as custom_jvp_call_p
from minijax.custom_derivatives.custom_jvp_vjp import custom_vjp_call_p as custom_vjp_call_p
from minijax.custom_derivatives.flat_functions import CustomVJPPrimal as CustomVJPPrimal
from minijax.custom_derivatives.flat_functions import SymbolicZero as SymbolicZero
from minijax.custom_derivatives.flat_functions import custom_vjp_primal_tree_values as custom_vjp_primal_tree_values
from minijax.custom_derivatives.flat_functions import zero_from_primal as zero_from_primal
from minijax.custom_derivatives.linear_solves import linear_call as linear_call
