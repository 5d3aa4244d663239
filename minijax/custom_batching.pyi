# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.own_rules.batch_rules import custom_vmap as custom_vmap
from minijax.scans.batched_calls import sequential_vmap as sequential_vmap
