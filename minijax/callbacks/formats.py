"""The format of a print, checked when it is written and filled in when it runs.

Reference: ``jax.debug.print``.
"""

# Made from chapters/14_callbacks_ground.md by `make chapter`;
# edit the chapter, not this file.

import re
import string

import numpy as np


class FormatCheck(string.Formatter):
    """Goes through a format without formatting, and misses what is missing."""

    def get_field(self, field_name, args, kwargs):
        key = re.split(r"[.\[]", field_name)[0]
        asks = "The format of debug.print asks for"
        if not key.isdigit():
            if key not in kwargs:
                raise KeyError(f"{asks} {key!r}, and no argument has that name.")
            return "", key
        if int(key) >= len(args):
            raise IndexError(
                f"{asks} positional argument {key}, counted from 0, and {len(args)} "
                "in all are given."
            )
        return "", int(key)

    def format_field(self, value, format_spec):
        return ""

    def check_unused_args(self, used_args, args, kwargs):
        unused = [arg for i, arg in enumerate(args) if i not in used_args]
        unused += [f"{name}=..." for name in kwargs if name not in used_args]
        if unused:
            raise ValueError(
                f"Unused arguments to debug.print: {unused}. Is the format an "
                "f-string? It should be a plain string: it is filled in later."
            )


class Printer:
    """Prints its arguments in a format, with NumPy's print options of now."""

    def __init__(self, fmt):
        self.__name__ = "printer"
        self.fmt, self.options = fmt, np.get_printoptions()
        self.fields = [field for _, field, _, _ in string.Formatter().parse(fmt)]

    def __call__(self, *args, **kwargs):
        print(self.text(*args, **kwargs))

    def text(self, *args, **kwargs):
        """Return the format, filled in; without fields it stays as it is."""
        if all(field is None for field in self.fields):
            return self.fmt
        with np.printoptions(**self.options):
            return self.fmt.format(*args, **kwargs)
