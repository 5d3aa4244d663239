# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.experimental.ode.adjoints import odeint as odeint
