# Made from the chapters by `make chapters`; edit them, not this file.
"""Public names of each namespace, and the modules which define them."""

PUBLIC: dict[str, dict[str, str]] = {
    "minijax": {
        "Array": "minijax.core",
    },
}
