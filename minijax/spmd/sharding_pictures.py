# Made from chapters/36_replicas_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Text pictures of which device has which part of an array.

Reference: ``jax.debug.visualize_array_sharding``.
"""

from minijax.debug import _functions as debug_functions


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


def visualize_array_sharding(arr, **kwargs):
    """Print which devices have which part of an array.

    Args:
      arr: an array of one or two axes.
      **kwargs: those of `visualize_sharding`.

    Reference: ``jax.debug.visualize_array_sharding``.
    """
    visualize_sharding(arr.shape, arr.sharding, **kwargs)


debug_functions["visualize_array_sharding"] = visualize_array_sharding
debug_functions["visualize_sharding"] = visualize_sharding
