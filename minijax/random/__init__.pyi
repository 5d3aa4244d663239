# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.randomness.making_keys import PRNGKey as PRNGKey
from minijax.randomness.making_keys import clone as clone
from minijax.randomness.making_keys import fold_in as fold_in
from minijax.randomness.making_keys import key as key
from minijax.randomness.making_keys import key_data as key_data
from minijax.randomness.making_keys import key_impl as key_impl
from minijax.randomness.making_keys import split as split
from minijax.randomness.making_keys import wrap_key_data as wrap_key_data
from minijax.randomness.normal import normal as normal
from minijax.randomness.uniform import bits as bits
from minijax.randomness.uniform import uniform as uniform
