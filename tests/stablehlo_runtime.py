"""Compile and run a StableHLO text with the runtime that jaxlib brings along."""

from functools import cache

import jax
import numpy as np
from jaxlib import _jax, xla_client


@cache
def runtime():
    """Return a client and a list of its first device."""
    device = jax.devices("cpu")[0]
    return device.client, _jax.DeviceList((device,))


def run(text, operands):
    """Return the results of the function ``main`` of a module, NumPy arrays."""
    client, devices = runtime()
    executable = client.compile_and_load(text, devices, xla_client.CompileOptions())
    with jax.enable_x64(True):
        arrays = [jax.device_put(x, jax.devices("cpu")[0]) for x in operands]
    results = executable.execute_sharded(arrays)
    return [np.asarray(x) for [x] in results.disassemble_into_single_device_arrays()]
