# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.experimental.jet.taylor_mode import fact as fact
from minijax.experimental.jet.taylor_mode import jet as jet
