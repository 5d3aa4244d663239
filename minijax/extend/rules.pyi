# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.arrays.array import shape_rules as shape_rules
from minijax.batching.vmap import vmap_rules as vmap_rules
from minijax.custom_derivatives.custom_jvp_vjp import callee_rules as callee_rules
from minijax.forward_mode.jvp import jvp_rules as jvp_rules
from minijax.kernels.lowering import kernel_rules as kernel_rules
from minijax.python_backend.codegen import python_rules as python_rules
from minijax.python_backend.source import write_evaluation as write_evaluation
from minijax.rematerialization.jaxpr_transforms import effect_rules as effect_rules
from minijax.reverse_mode.backward_pass import transpose_rules as transpose_rules
