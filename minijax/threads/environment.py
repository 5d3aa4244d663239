"""Environment report: versions, devices, backends, threads and the compilation cache.

Reference: ``jax.print_environment_info``.
"""

# Made from chapters/27_threads_rest.md by `make chapter`;
# edit the chapter, not this file.

import os
import platform
import sys
from typing import Literal, overload

import llvmlite
import numpy as np

import minijax
from minijax.arrays.devices import devices
from minijax.arrays.dtypes import config
from minijax.dispatch.compilation_cache import list_cache_entries, open_cache_folder
from minijax.dispatch.fastpath_functions import enable_fastpath
from minijax.dispatch.interrupts import defer_interrupts
from minijax.dispatch.word_language import UnknownLayout
from minijax.jitting.compilation import backend_name, backends
from minijax.llvm.targets import current_target
from minijax.threads.atomics import available_cores

_SWITCHES = "MINIJAX_", "JAX_", "XLA_"  # with which variables that matter begin


def _devices(platform=None):
    return ", ".join(map(repr, devices(platform)))


def _backends():
    return f"{backend_name()} (there are {', '.join(backends)})"


def _processor():
    target = current_target()
    return f"{target.cpu}, vectors of {target.vector_bytes} bytes"


def _threads():
    cores = available_cores()
    return f"{config.minijax_num_threads or cores} of {cores} cores"


def _calls():
    if not config.minijax_fast_path:
        return "answered by Python: minijax_fast_path is off"
    try:
        enable_fastpath()
    except UnknownLayout as error:
        return f"answered by Python: this one's objects are not known ({error})"
    return "answered by machine code, when warm"


def _cache():
    path = config.jax_compilation_cache_dir
    if path is None or not config.jax_enable_compilation_cache:
        return "off"
    if not os.path.isdir(path):
        return f"{path}, not there yet"
    with defer_interrupts(), open_cache_folder(path) as folder:
        found = list_cache_entries(folder)
    size = sum(size for _, size, _ in found)
    return f"{path}, {len(found)} files, {size / 1e6:.1f} MB"


_LINES = {
    "minijax": lambda: minijax.__version__,
    "numpy": lambda: np.__version__,
    "llvmlite": lambda: llvmlite.__version__,
    "python": lambda: sys.version.replace("\n", " "),
    "devices": _devices,
    "gpu": lambda: _devices("gpu"),
    "backend": _backends,
    "processor": _processor,
    "threads": _threads,
    "calls": _calls,
    "cache": _cache,
    "platform": lambda: str(platform.uname()),
}


def _line(name, say):
    try:
        return f"{name}: {say()}"
    except (OSError, RuntimeError, ValueError) as error:
        return f"{name}: {error}"


@overload
def print_environment_info(return_string: Literal[False] = ...) -> None: ...


@overload
def print_environment_info(return_string: Literal[True]) -> str: ...


def print_environment_info(return_string: bool = False) -> str | None:
    """Print what a report of a fault should say: versions, devices, settings.

    Args:
      return_string: return the text and print nothing.

    Returns:
      The text if `return_string` is true, otherwise None. Each line is a name and what
      there is to say; ``NAME=value`` are the variables of the environment whose names
      begin with ``MINIJAX_``, ``JAX_`` or ``XLA_``.
    """
    found = [f"{k}={v}" for k, v in os.environ.items() if k.startswith(_SWITCHES)]
    text = "\n".join([*(_line(*pair) for pair in _LINES.items()), *sorted(found)])
    if return_string:
        return text
    print(text)
    return None
