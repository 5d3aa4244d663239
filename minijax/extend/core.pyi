# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.callbacks.extension import Primitive as Primitive
from minijax.jaxprs.checking import JaxprTypeError as JaxprTypeError
from minijax.jaxprs.checking import check_jaxpr as check_jaxpr
from minijax.jaxprs.jaxpr import ClosedJaxpr as ClosedJaxpr
from minijax.jaxprs.jaxpr import Jaxpr as Jaxpr
from minijax.jaxprs.jaxpr import JaxprEqn as JaxprEqn
from minijax.jaxprs.jaxpr import Literal as Literal
from minijax.jaxprs.jaxpr import Var as Var
from minijax.jaxprs.jaxpr import jaxpr_as_fun as jaxpr_as_fun
from minijax.jaxprs.printing import jaxprs_in_params as jaxprs_in_params
from minijax.jaxprs.printing import subjaxprs as subjaxprs
