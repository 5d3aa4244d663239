# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.indexing.refs import Ref as Ref
from minijax.indexing.refs import addupdate as addupdate
from minijax.indexing.refs import empty_ref as empty_ref
from minijax.indexing.refs import free_ref as free_ref
from minijax.indexing.refs import freeze as freeze
from minijax.indexing.refs import get as get
from minijax.indexing.refs import new_ref as new_ref
from minijax.indexing.refs import set as set
from minijax.indexing.refs import swap as swap
