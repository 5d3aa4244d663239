"""Whether all processes run the same program: digests of its text."""

# Made from chapters/37_machines.md by `make chapter`;
# edit the chapter, not this file.

import re

import numpy as np

from minijax.forgetting.remembering import cache_by_object, once_of
from minijax.kernels.parts import sha256
from minijax.ranks.engines import allreduce


def digest(text):
    """Return a number of 62 bits that tells a text from others."""
    return int.from_bytes(sha256(text.encode()).digest()[:8]) >> 2


def agree(engine, text):
    """Raise unless all ranks of an engine bring the same text.

    Raises:
      ValueError: on all of them, with the different texts.
    """
    own = digest(text)
    high, low = allreduce(engine, np.array([own, -own]), np.maximum)
    if high != -low:
        raise ValueError(_apart(engine.comm.allgather(text)))


def _apart(texts):
    """Return a message with each text, and the ranks that have it."""
    ranks: dict[str, list] = {}
    for rank, text in enumerate(texts):
        ranks.setdefault(text, []).append(str(rank))
    shown = [f"rank {', '.join(which)}:\n{text}" for text, which in ranks.items()]
    return (
        "The processes of one mesh have to run the same programs in the same order, "
        "and these differ:\n" + "\n".join(shown) + "\nLook for what depends on "
        "process_index(), on the order of a set, or on data that only one has read."
    )


_texts = cache_by_object()


def text_of(program, mesh):
    """Return the text of a program on a mesh, without addresses in memory.

    Args:
      program: a `ClosedJaxpr` with its specifications, or what has a `text`.
      mesh: a `Mesh`.
    """
    key, *specs = program if isinstance(program, tuple) else [program]

    def write():
        text = getattr(key, "text", None) or f"{key} {specs}"
        places = [str(device) for device in mesh._flat]
        return re.sub(r"0x[0-9a-f]+", "0x", f"{text}\non {mesh}, {places}")

    return once_of(_texts, key).get((str(specs), mesh), write)
