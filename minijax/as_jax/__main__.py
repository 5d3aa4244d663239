"""What ``python -m minijax.as_jax`` runs."""

# Made from chapters/42_as_jax_rest.md by `make chapter`;
# edit the chapter, not this file.

import sys

from minijax.as_jax.command import run

if __name__ == "__main__" and __package__ == "minijax.as_jax":
    run(sys.argv[1:])
