"""The backends whose programs run where the tests have their arrays.

That is one CPU, or the emulated card of `make gpu-check`. Backends that a file of tests
makes for itself, such as those without an annotation, are run by that file alone.
"""

import os

from minijax.jitting.compilation import backends

PLATFORM = "gpu" if os.environ.get("MINIJAX_TEST_DEVICE") == "card" else "cpu"
HERE = [
    name
    for name, backend in backends.items()
    if PLATFORM in getattr(backend, "platforms", (PLATFORM,))
    and backend.__module__.startswith("minijax.")
]
