"""A GPU that is emulated, for the tests that ask for one; it is gone behind them."""

from contextlib import contextmanager, nullcontext

import minijax
from minijax.arrays.devices import platforms
from minijax.cuda.driver import cupy_stand_in
from minijax.jitting.compilation import backends, default_backends
from minijax_book.emulator.cupy_card import EmulatedCuPy


@contextmanager
def emulated_gpu(kind=EmulatedCuPy, **options):
    """Have one GPU inside the block; return it, and what stands in for CuPy."""
    before = cupy_stand_in.value, *[t.pop("gpu", None) for t in TABLES]
    cupy = cupy_stand_in.value = kind(**options)
    try:
        [gpu] = minijax.devices("gpu")
        yield gpu, cupy
    finally:
        minijax.clear_caches()
        cupy_stand_in.value = before[0]
        for table, value in zip(TABLES, before[1:]):
            table.pop("gpu", None)
            if value is not None:
                table["gpu"] = value


def card_of(real, **options):
    """Return a context with a GPU: the machine's own, or an emulated one."""
    if real:
        return nullcontext((minijax.devices("gpu")[0], None))
    return emulated_gpu(**options)


TABLES = platforms, backends, default_backends
