# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.reverse_mode.derivative_checks import check_grads as check_grads
from minijax.reverse_mode.derivative_checks import check_jvp as check_jvp
from minijax.reverse_mode.derivative_checks import check_vjp as check_vjp
