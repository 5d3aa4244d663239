"""Names for values that may be kept, and what a derivative keeps.

Reference: ``jax.ad_checkpoint``.
"""

# Made from chapters/11_own_rules_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax._lazy import namespace

__getattr__, __dir__ = namespace(__name__)
