# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.experimental.ode.runge_kutta import odeint as odeint
