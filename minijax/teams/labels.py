"""Labels of exchanges: numbers that say what is exchanged, and for which line."""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

import zlib

told: dict = {}  # from the numbers in labels to what they say
steps_told: dict = {}  # and to the steps that say it


def number_of(text, more=""):
    """Return a number for a text, and what else it depends on; in all processes."""
    number = zlib.crc32(f"{text}{more}".encode()) & 0x7FFFFFFF
    told[number] = text
    return number


def label_for(step):
    """Return the word that says what is exchanged, and for which line."""
    parts = getattr(step, "parts", (step,))
    how = [(x.how, x.x.dtype.name, x.x.size, x.out.size, x.sources) for x in parts]
    number = number_of(step.label, str(how))
    steps_told[number] = step
    return number | number_of(step.line) << 32
