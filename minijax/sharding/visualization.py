"""Text pictures of which device has which part of an array.

Reference: ``jax.debug.visualize_array_sharding``.
"""

# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax.arrays.array import as_array_impl
from minijax.arrays.devices import default_placement
from minijax.batching.vmap import vmap_rules
from minijax.callbacks.callback import def_effectful_debug_rules
from minijax.core import Primitive, impl_rules
from minijax.debug import _functions as debug_functions
from minijax.kernels.lowering import kernel_rules
from minijax.python_backend.codegen import python_rules
from minijax.pytrees.tree_util import tree_map


def visualize_sharding(
    shape, sharding, *, use_color=True, scale=1.0, min_width=9, max_width=80,
    color_map=None,
):  # fmt: skip
    """Print which devices have which part of an array of one or two axes.

    Args:
      shape: of the array.
      sharding: a `Sharding`.
      use_color, color_map: not used: the picture is text.
      scale: how wide cells are, for each element.
      min_width, max_width: of a cell, and of the picture.

    Raises:
      ValueError: if there are no axes, or more than two.

    Reference: ``jax.debug.visualize_sharding``.
    """
    if len(shape) not in (1, 2):
        raise ValueError(
            f"`visualize_sharding` only works for shapes with 1 and 2 dims, got {shape}"
        )
    cells: dict = {}
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        starts = tuple([part.start or 0 for part in index])
        cells.setdefault((0, *starts)[-2:], []).append(device.id)
    rows, columns = (sorted({place[i] for place in cells}) for i in (0, 1))
    name = next(iter(sharding.device_set)).platform.upper()
    texts = {place: f"{name} {','.join(map(str, ids))}" for place, ids in cells.items()}
    widest = max(map(len, texts.values())) + 2
    room = int(shape[-1] / len(columns) * scale)
    width = max(min(max(min_width, room), max_width // len(columns)), widest)
    line = "+" + ("-" * width + "+") * len(columns)
    for row in rows:
        print(line)
        print("|" + "".join(f"{texts[row, c]:^{width}}|" for c in columns))
    print(line)


debug_functions["visualize_sharding"] = visualize_sharding


inspect_sharding_p = Primitive("inspect_sharding")
inspect_sharding_p.multiple_results = True


def _inspect(x, callback):
    callback(as_array_impl(x).sharding)
    return []


def _of_batch(axis, args, dims, callback):
    return inspect_sharding_p.bind(*args, callback=callback), []


def _on_one_device(of_table, eqn, *_):
    eqn.params["callback"](default_placement().sharding)
    return []


def_effectful_debug_rules(inspect_sharding_p)
impl_rules[inspect_sharding_p], vmap_rules[inspect_sharding_p] = _inspect, _of_batch
python_rules[inspect_sharding_p] = kernel_rules[inspect_sharding_p] = _on_one_device


def inspect_array_sharding(value: Any, *, callback: Callable[[Any], None]) -> None:
    """Call a function with the sharding of each array, as soon as it is known.

    Args:
      value: a tree of arrays. In a jitted function their shardings are known when it
        is compiled, so later calls of what is compiled do not call `callback` again.
      callback: a function of a `Sharding`.

    Reference: ``jax.debug.inspect_array_sharding``.
    """
    tree_map(lambda x: inspect_sharding_p.bind(x, callback=callback) and None, value)


def visualize_array_sharding(arr, **kwargs):
    """Print which devices have which part of an array, also in a jitted function.

    Args:
      arr: an array of one or two axes.
      **kwargs: those of `visualize_sharding`.

    Reference: ``jax.debug.visualize_array_sharding``.
    """
    shape = arr.shape
    inspect_array_sharding(
        arr, callback=lambda found: visualize_sharding(shape, found, **kwargs)
    )


debug_functions["inspect_array_sharding"] = inspect_array_sharding
debug_functions["visualize_array_sharding"] = visualize_array_sharding
