# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.ops.segments import segment_max as segment_max
from minijax.ops.segments import segment_min as segment_min
from minijax.ops.segments import segment_prod as segment_prod
from minijax.ops.segments import segment_sum as segment_sum
