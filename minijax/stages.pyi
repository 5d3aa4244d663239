# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.jitting.stages import ArgInfo as ArgInfo
from minijax.jitting.stages import Compiled as Compiled
from minijax.jitting.stages import CompilerOptions as CompilerOptions
from minijax.jitting.stages import Lowered as Lowered
from minijax.jitting.stages import Traced as Traced
from minijax.jitting.stages import Wrapped as Wrapped
