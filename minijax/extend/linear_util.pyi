# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.doorways.wrapped_functions import StoreException as StoreException
from minijax.doorways.wrapped_functions import WrappedFun as WrappedFun
from minijax.doorways.wrapped_functions import cache as cache
from minijax.doorways.wrapped_functions import merge_linear_aux as merge_linear_aux
from minijax.doorways.wrapped_functions import transformation as transformation
from minijax.doorways.wrapped_functions import transformation2 as transformation2
from minijax.doorways.wrapped_functions import transformation_with_aux as transformation_with_aux
from minijax.doorways.wrapped_functions import transformation_with_aux2 as transformation_with_aux2
from minijax.doorways.wrapped_functions import wrap_init as wrap_init
