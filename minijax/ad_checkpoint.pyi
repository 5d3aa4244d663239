# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.rematerialization.jaxpr_transforms import Offloadable as Offloadable
from minijax.rematerialization.jaxpr_transforms import Recompute as Recompute
from minijax.rematerialization.jaxpr_transforms import Saveable as Saveable
from minijax.rematerialization.policies import checkpoint_name as checkpoint_name
from minijax.rematerialization.policies import checkpoint_policies as checkpoint_policies
from minijax.rematerialization.policies import print_saved_residuals as print_saved_residuals
