# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.reverse.numerical_checks import check_grads as check_grads
