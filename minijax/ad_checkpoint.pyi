# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.forgetting.decisions import Offloadable as Offloadable
from minijax.forgetting.decisions import Recompute as Recompute
from minijax.forgetting.decisions import Saveable as Saveable
from minijax.forgetting.policies import checkpoint_name as checkpoint_name
from minijax.forgetting.policies import checkpoint_policies as checkpoint_policies
from minijax.forgetting.residuals import print_saved_residuals as print_saved_residuals
