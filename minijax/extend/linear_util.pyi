# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.compat.linear_util import StoreException as StoreException
from minijax.compat.linear_util import WrappedFun as WrappedFun
from minijax.compat.linear_util import cache as cache
from minijax.compat.linear_util import merge_linear_aux as merge_linear_aux
from minijax.compat.linear_util import transformation as transformation
from minijax.compat.linear_util import transformation2 as transformation2
from minijax.compat.linear_util import transformation_with_aux as transformation_with_aux
from minijax.compat.linear_util import transformation_with_aux2 as transformation_with_aux2
from minijax.compat.linear_util import wrap_init as wrap_init
