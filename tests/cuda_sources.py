"""Sources that the emulator has met, kept for NVIDIA's compiler.

With `CUDA_SOURCES=FOLDER` each source that a battery compiles is written to the folder;
`python -m tests.cuda_compiles --met FOLDER` compiles them all.
"""

import hashlib
import os
from pathlib import Path


def kept(source):
    """Return a source; it is in the folder then, if there is one."""
    folder = os.environ.get("CUDA_SOURCES")
    if folder:
        name = hashlib.sha256(source.encode()).hexdigest()[:16]
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"{name}.cu").write_text(source)
    return source
