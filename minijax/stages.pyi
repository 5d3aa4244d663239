# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.jitting.lowering import ArgInfo as ArgInfo
from minijax.jitting.lowering import Compiled as Compiled
from minijax.jitting.lowering import Lowered as Lowered
from minijax.jitting.lowering import Traced as Traced
from minijax.jitting.lowering import Wrapped as Wrapped
