# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.pytrees.tree_operations import tree_all as _tree_all
from minijax.pytrees.tree_operations import tree_broadcast as _tree_broadcast
from minijax.pytrees.tree_operations import tree_map_with_path as _tree_map_with_path
from minijax.pytrees.tree_operations import tree_reduce as _tree_reduce
from minijax.pytrees.tree_operations import tree_reduce_associative as _tree_reduce_associative
from minijax.pytrees.tree_operations import tree_static as _tree_static
from minijax.pytrees.tree_operations import tree_transpose as _tree_transpose
from minijax.pytrees.tree_operations import tree_unflatten as _tree_unflatten
from minijax.pytrees.tree_util import tree_flatten as _tree_flatten
from minijax.pytrees.tree_util import tree_flatten_with_path as _tree_flatten_with_path
from minijax.pytrees.tree_util import tree_leaves as _tree_leaves
from minijax.pytrees.tree_util import tree_leaves_with_path as _tree_leaves_with_path
from minijax.pytrees.tree_util import tree_map as _tree_map
from minijax.pytrees.tree_util import tree_structure as _tree_structure
all = _tree_all
broadcast = _tree_broadcast
flatten = _tree_flatten
flatten_with_path = _tree_flatten_with_path
leaves = _tree_leaves
leaves_with_path = _tree_leaves_with_path
map = _tree_map
map_with_path = _tree_map_with_path
reduce = _tree_reduce
reduce_associative = _tree_reduce_associative
static = _tree_static
structure = _tree_structure
transpose = _tree_transpose
unflatten = _tree_unflatten
