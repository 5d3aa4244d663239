# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.experimental.sparse.coordinates import BCOO as BCOO
from minijax.experimental.sparse.coordinates import BCSR as BCSR
from minijax.experimental.sparse.coordinates import COO as COO
from minijax.experimental.sparse.coordinates import CSC as CSC
from minijax.experimental.sparse.coordinates import CSR as CSR
from minijax.experimental.sparse.coordinates import JAXSparse as JAXSparse
from minijax.experimental.sparse.coordinates import bcoo_fromdense as bcoo_fromdense
from minijax.experimental.sparse.coordinates import bcoo_todense as bcoo_todense
from minijax.experimental.sparse.coordinates import sparsify as sparsify
from minijax.experimental.sparse.coordinates import todense as todense
