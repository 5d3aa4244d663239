# Made from the chapters by `make chapters`; edit them, not this file.
"""Public names with the modules which define them; modules which fill tables."""

PUBLIC: dict[str, dict[str, str]] = {
    "minijax": {
        "Array": "minijax.core",
    },
}

REGISTERS: list[str] = []
