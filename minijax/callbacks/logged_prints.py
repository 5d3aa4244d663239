"""Values that a program hands to Python's logging.

Reference: ``jax.debug.log``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.callbacks.debugging import print_by
from minijax.callbacks.formats import Printer
from minijax.diagnostics.user_lines import user_line

LOGGER = "minijax.callbacks.logged_prints"


class LogPrinter(Printer):
    """Logs its arguments in a format, as of the user's line of now."""

    def __init__(self, fmt):
        super().__init__(fmt)
        line = user_line()
        self.place = (line.file, line.position[0]) if line else ("", 0)

    def __call__(self, *args, **kwargs):
        import logging  # not earlier: a fork takes logging's lock before ours

        logger, text = logging.getLogger(LOGGER), self.text(*args, **kwargs)
        record = (LOGGER, logging.INFO, *self.place, "%s", (text,), None)
        if logger.isEnabledFor(logging.INFO):
            logger.handle(logger.makeRecord(*record))


def debug_log(
    fmt=None,
    *args,
    ordered=False,
    partitioned=False,
    skip_format_check=False,
    **kwargs,
):
    """Log values at the level INFO, wherever a program computes them.

    The arguments and the errors are those of `debug_print`; the logger's name is that
    of this module.

    Reference: ``jax.debug.log``.
    """
    how = LogPrinter, ordered, skip_format_check
    return print_by(*how, "debug.log", fmt, args, kwargs)
