"""Images are resampled by separable convolution kernels.

Source: R. G. Keys, *Cubic convolution interpolation for digital image processing*, IEEE
Trans. Acoust., Speech, Signal Process. 29 (1981); C. E. Duchon, *Lanczos filtering in
one and two dimensions*, J. Appl. Meteor. 18 (1979).

Reference: ``jax.image``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import enum
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.core import Array
from minijax.extend.arguments import canonicalize_axis, check_rank, operator_index
from minijax.extend.promotion import promote_dtypes_inexact, promoting
from minijax.typing import ArrayLike


class ResizeMethod(enum.Enum):
    """By which kernel an image is resampled.

    Reference: ``jax.image.ResizeMethod``.
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> "ResizeMethod":
        """Return the method of a name.

        Raises:
          ValueError: for a name that is none.
        """
        for method, names in _NAMES.items():
            if s in names.split():
                return method
        raise ValueError(f'Unknown resize method "{s}"')


_NAMES = {
    ResizeMethod.NEAREST: "nearest",
    ResizeMethod.LINEAR: "linear bilinear trilinear triangle",
    ResizeMethod.LANCZOS3: "lanczos3",
    ResizeMethod.LANCZOS5: "lanczos5",
    ResizeMethod.CUBIC: "cubic bicubic tricubic",
    ResizeMethod.CUBIC_PYTORCH: "cubic-pytorch bicubic-pytorch",
    ResizeMethod.AREA: "area",
}


def _triangle_kernel(x):
    return jnp.maximum(0, 1 - x)


def _lanczos_kernel(radius, x):
    """Return sinc(x) sinc(x / radius), up to the radius."""
    near = x <= 1e-3
    angle = np.pi * jnp.where(near, 1, x)
    found = radius * lax.sin(angle) * jnp.sin(angle / radius) / (angle * angle)
    return jnp.where(x > radius, 0, jnp.where(near, 1, found))


def _cubic_kernel(steep, x):
    """Return Keys's kernel: two cubic pieces, with that slope at 1."""
    inner = ((steep + 2) * x - (steep + 3)) * x * x + 1
    outer = ((x - 5) * x + 8) * x * steep - 4 * steep
    return jnp.where(x < 1, inner, jnp.where(x < 2, outer, 0))


_KERNELS: dict[ResizeMethod, Any] = {
    ResizeMethod.LINEAR: _triangle_kernel,
    ResizeMethod.LANCZOS3: partial(_lanczos_kernel, 3),
    ResizeMethod.LANCZOS5: partial(_lanczos_kernel, 5),
    ResizeMethod.CUBIC: partial(_cubic_kernel, -0.5),
    ResizeMethod.CUBIC_PYTORCH: partial(_cubic_kernel, -0.75),
}


def _overlaps_of_pixels(old, new, scale, translation):
    """Return how much of each new pixel, cast back, lies on each old one."""
    inverse = 1 / scale
    left = jnp.arange(new, dtype=scale.dtype) * inverse - translation * inverse
    start = jnp.arange(old, dtype=scale.dtype)[:, None]
    end = jnp.minimum(left + inverse, start + 1)
    return jnp.maximum(0, end - jnp.maximum(left, start))


def _pixel_weights(old, new, scale, translation, method, antialias):
    """Return the matrix ``[old, new]`` of weights along an axis."""
    inverse, pixels = 1 / scale, jnp.arange(new, dtype=scale.dtype)
    centre = (pixels + 0.5) * inverse - translation * inverse - 0.5
    edges = 2 if method is ResizeMethod.CUBIC_PYTORCH else 0
    if method is ResizeMethod.AREA:
        weights = _overlaps_of_pixels(old, new, scale, translation)
    else:
        pixels = jnp.arange(-edges, old + edges, dtype=scale.dtype)
        width = jnp.maximum(inverse, 1) if antialias else 1
        weights = _KERNELS[method](abs(centre - pixels[:, None]) / width)
    if edges:  # pixels beyond an edge are like the one at the edge
        first, last = weights[: edges + 1].sum(0), weights[-edges - 1 :].sum(0)
        inner = weights[edges + 1 : -edges - 1]
        both = [first[None], inner, last[None]]
        alone = weights.sum(0, keepdims=True)
        weights = jnp.concatenate(both) if old > 1 else alone
    total = weights.sum(0, keepdims=True)
    some = abs(total) > 1000 * np.finfo(np.float32).eps
    weights = jnp.where(some, weights / jnp.where(some, total, 1), 0)
    inside = (centre >= -0.5) & (centre <= old - 0.5)
    return weights if edges else jnp.where(inside, weights, 0)


def _method_of(method, antialias):
    """Return the method; PyTorch's cubic one is the usual one where it is smoothed."""
    found = ResizeMethod.from_string(method) if isinstance(method, str) else method
    is_smooth = found is ResizeMethod.CUBIC_PYTORCH and antialias
    return ResizeMethod.CUBIC if is_smooth else ResizeMethod(found)


def _size_of_image(image, shape):
    shape = tuple(operator_index(size, "a size of the image") for size in shape)
    if len(shape) != image.ndim:
        raise ValueError(
            "shape must have length equal to the number of dimensions of x;  "
            f"{shape} vs {image.shape}"
        )
    return shape


def _resampled_along(image, shape, axes, scale, translation, method, smooth, precision):
    for place, axis in enumerate(axes):
        axis = canonicalize_axis(axis, image.ndim)
        sizes = image.shape[axis], shape[axis]
        how = scale[place], translation[place], method, smooth
        weights = _pixel_weights(*sizes, *how).astype(image.dtype)
        found = jnp.tensordot(image, weights, (axis, 0), precision=precision)
        image = jnp.moveaxis(found, -1, axis)
    return image


@promoting
def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """Move and stretch an image: x becomes ``x * scale + translation``.

    Args:
      image: an array.
      shape: of the result, of as many axes.
      spatial_dims: the axes along which it is stretched.
      scale: for each of them a factor; it may be traced, and has a gradient.
      translation: for each of them by how many new pixels it is moved, alike.
      method: a `ResizeMethod` or its name; not ``"nearest"``.
      antialias: whether to widen the kernel where the image shrinks.
      precision: of the products.

    Returns:
      An array of that shape. Pixels that come from outside of the image are 0.

    Raises:
      ValueError: if `shape` does not fit, or for a method that does not.

    Reference: ``jax.image.scale_and_translate``.
    """
    x = jnp.asarray(image)
    shape, found = _size_of_image(x, shape), _method_of(method, antialias)
    if found is ResizeMethod.NEAREST:
        raise ValueError(
            "Nearest neighbor resampling is not currently supported for "
            "scale_and_translate."
        )
    [x] = promote_dtypes_inexact(x)
    scale, move = promote_dtypes_inexact(jnp.asarray(scale), jnp.asarray(translation))
    check_rank("scale_and_translate", 1, scale, move)
    how = found, antialias, precision
    return _resampled_along(x, shape, spatial_dims, scale, move, *how)


@promoting
def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = lax.Precision.HIGHEST,
) -> Array:
    """Return an image of another size.

    Args:
      image: an array.
      shape: of the result, of as many axes. Axes that keep their size are left alone.
      method: a `ResizeMethod` or its name: ``"nearest"``, ``"linear"``, ``"cubic"``,
        ``"lanczos3"``, ``"lanczos5"``, ``"cubic-pytorch"``, ``"area"``.
      antialias: whether to widen the kernel where the image shrinks.
      precision: of the products.

    Returns:
      An array of that shape, of floats unless the method is ``"nearest"``.

    Raises:
      ValueError: if `shape` does not fit, or for an unknown method.

    Reference: ``jax.image.resize``.
    """
    x = jnp.asarray(image)
    shape, found = _size_of_image(x, shape), _method_of(method, antialias)
    axes = [axis for axis in range(x.ndim) if x.shape[axis] != shape[axis]]
    if found is ResizeMethod.NEAREST:
        return _nearest_pixels(x, shape, axes)
    [x] = promote_dtypes_inexact(x)
    scale = [shape[axis] / x.shape[axis] if shape[axis] else 1.0 for axis in axes]
    scale, move = jnp.array(scale, float), jnp.zeros(len(axes))
    return _resampled_along(x, shape, axes, scale, move, found, antialias, precision)


def _nearest_pixels(x, shape, axes):
    for axis in axes:
        new, old = shape[axis], x.shape[axis]
        centre = (np.arange(new, dtype=np.float32) + np.float32(0.5)) * old
        places = np.floor(centre / np.float32(new)).astype(np.int32)
        x = jnp.take(x, places, axis, mode="clip")
    return x
