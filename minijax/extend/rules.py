"""The tables of rules that give a primitive its meaning, one for each interpretation.

``table[primitive] = rule`` adds a rule, and ``table.reasons[primitive] = "..."`` says
why there is none on purpose. The rules of evaluation are ``minijax.core.impl_rules``;
``minijax.interpreters.ad`` and ``batching`` take rules in JAX's form. JAX has no public
module of this kind.
"""

# Made from chapters/02_arrays_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
