"""Sparse matrices in coordinate format (COO): numbers, and the indices of each.

Reference: ``jax.experimental.sparse.BCOO``.
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from minijax import numpy as jnp
from minijax import vmap
from minijax.extend.arguments import (
    canonicalize_axis,
    canonicalize_int_tuple,
    operator_index,
)
from minijax.tree_util import register_pytree_node_class, tree_leaves

_MISSING = "from_scipy_sparse reshape sort_indices sum_duplicates update_layout"


class JAXSparse:
    """What all kinds of sparse arrays are an instance of.

    Reference: ``jax.experimental.sparse.JAXSparse``.
    """

    __array_ufunc__ = None  # operators of NumPy's arrays leave their operand to ours


def _refuse(what):
    raise NotImplementedError(
        f"{what} is not here for sparse arrays: use todense(), or do it by the data "
        "and the indices."
    )


def _count_batch_axes(data, indices, shape):
    """Return how many axes of a batch there are, if three shapes fit together."""
    n_batch = len(indices) - 2
    if n_batch >= 0 and len(data) > n_batch + 1:
        _refuse("n_dense, an axis of dense rows,")
    sizes = n_batch >= 0 and (*shape[:n_batch], len(shape) - n_batch)
    if sizes == (*indices[:-2], indices[-1]) and data == indices[:-1]:
        return n_batch
    raise ValueError(
        f"BCOO of shape {shape}: data of shape {data} and indices of shape {indices} "
        "do not fit. They are (..., nse) and (..., nse, ndim), with the axes of a "
        "batch in front."
    )


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array: numbers, and the indices of the place of each.

    Numbers at the same place are added, and those outside of the shape do not count.

    Args:
      args: a pair of the numbers, of shape (nse,), and their integer indices, of shape
        (nse, ndim); in front, both may have axes of a batch.
      shape: of the array, with the axes of the batch.
      indices_sorted, unique_indices: what the caller promises; it is kept.

    Raises:
      TypeError: for indices that are no integers.
      ValueError: if numbers, indices and shape do not fit together.

    Reference: ``jax.experimental.sparse.BCOO``.
    """

    def __init__(self, args, *, shape, indices_sorted=False, unique_indices=False):
        self.data, self.indices = map(jnp.asarray, args)
        self.indices_sorted = bool(indices_sorted)
        self.unique_indices = bool(unique_indices)
        shape = canonicalize_int_tuple(shape, "Shapes")
        if not jnp.issubdtype(self.indices.dtype, jnp.integer):
            raise TypeError(f"BCOO: indices are integers, not {self.indices.dtype}.")
        n_batch = _count_batch_axes(self.data.shape, self.indices.shape, shape)
        self._sizes = shape[n_batch:]

    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: len(self._sizes))
    n_dense = property(lambda self: 0)
    nse = property(lambda self: self.indices.shape[-2])
    shape = property(lambda self: (*self.indices.shape[:-2], *self._sizes))
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape)))
    dtype = property(lambda self: self.data.dtype)
    T = property(lambda self: self.transpose())

    def __repr__(self):
        batch = f", n_batch={self.n_batch}" if self.n_batch else ""
        shape = list(self.shape)
        return f"{type(self).__name__}({self.dtype}{shape}, nse={self.nse}{batch})"

    def __len__(self):
        return self.shape[0]

    def __getattr__(self, name):
        why = " Use todense()." if name in _MISSING.split() else ""
        raise AttributeError(f"a {type(self).__name__} has no attribute {name!r}.{why}")

    def __array__(self, *args, **kwargs):
        raise TypeError("A sparse array is made dense by todense() alone.")

    def __eq__(self, other):
        _refuse("Comparison")

    __hash__ = None

    def __getitem__(self, index):
        _refuse("Indexing")

    def tree_flatten(self):
        """Return the numbers and the indices, and what is known of them."""
        known = self._sizes, self.indices_sorted, self.unique_indices
        return (self.data, self.indices), known

    @classmethod
    def tree_unflatten(cls, known, children):
        """Return a `BCOO` of two leaves, of whatever kind they are."""
        new = object.__new__(cls)
        new.data, new.indices = children
        new._sizes, new.indices_sorted, new.unique_indices = known
        return new

    @classmethod
    def fromdense(cls, mat, *, nse=None, index_dtype=np.int32, n_dense=0, n_batch=0):
        """Return the numbers of an array that are not 0, in order.

        Args:
          mat: the array.
          nse: how many of them; if fewer are there, zeros at no place fill the rest.
          index_dtype: of the indices.
          n_dense, n_batch: 0.

        Raises:
          ConcretizationTypeError: for an array that is traced, without `nse`.
        """
        if n_dense or n_batch:
            _refuse("fromdense with n_dense or n_batch")
        mat = jnp.asarray(mat)
        rows = jnp.atleast_1d(mat)
        if nse is None:
            nse = int(jnp.count_nonzero(mat))
        nse = operator_index(nse, "nse")
        places = jnp.nonzero(rows, size=nse, fill_value=rows.shape)
        data = rows.at[places].get(mode="fill", fill_value=0)
        indices = jnp.stack(places[: mat.ndim] or (data,), -1)[:, : mat.ndim]
        known = mat.shape, True, True
        return cls.tree_unflatten(known, (data, indices.astype(index_dtype)))

    def _with(self, data, **changes):
        """Return the same places with other numbers."""
        known = {"shape": self.shape, "indices_sorted": self.indices_sorted}
        known |= {"unique_indices": self.unique_indices} | changes
        return BCOO((data, self.indices), **known)

    def _one(self, what):
        if self.n_batch:
            _refuse(f"{what} of a batch, instead of vmap,")
        return tuple(self.indices.T)

    def todense(self):
        """Return the array with its zeros."""
        if self.n_batch:
            return vmap(BCOO.todense)(self)
        if not self._sizes:
            return self.data.sum(dtype=self.dtype)
        zeros = jnp.zeros(self._sizes, self.dtype)
        return zeros.at[self._one("todense")].add(self.data, mode="drop")

    def astype(self, dtype):
        """Return the array with numbers of another dtype."""
        return self._with(self.data.astype(dtype))

    def block_until_ready(self):
        """Return the array when its numbers are there."""
        self.data.block_until_ready()
        return self

    def transpose(self, axes=None):
        """Return the array with its axes in another order."""
        self._one("transpose")
        axes = range(self.ndim)[::-1] if axes is None else axes
        axes = [canonicalize_axis(axis, self.ndim) for axis in axes]
        if sorted(axes) != [*range(self.ndim)]:
            raise ValueError(f"transpose: {axes} do not name {self.ndim} axes.")
        pair = self.data, self.indices[:, jnp.array(axes, int)]
        shape = [self.shape[axis] for axis in axes]
        return BCOO(pair, shape=shape, unique_indices=self.unique_indices)

    def sum(self, axis=None):
        """Return sums along axes: a `BCOO`, or an array if they are all axes."""
        inside = (self.indices < jnp.array(self._sizes, self.indices.dtype)).all(-1)
        data = jnp.where(inside, self.data, jnp.zeros((), self.dtype))
        if axis is None:
            return data.sum()
        axes = (axis,) if np.ndim(axis) == 0 else axis
        axes = {canonicalize_axis(axis, self.ndim) for axis in axes}
        kept = [axis for axis in range(self.ndim) if axis not in axes]
        if not kept:
            return data.sum()
        self._one("sum along an axis")
        pair = data, self.indices[:, jnp.array(kept)]
        return BCOO(pair, shape=[self.shape[axis] for axis in kept])

    def __neg__(self):
        return self._with(-self.data)

    def __abs__(self):
        if not self.unique_indices:
            _refuse("abs without unique_indices=True")
        return self._with(abs(self.data))

    def __pos__(self):
        return self

    def __mul__(self, other):
        if isinstance(other, JAXSparse):
            _refuse("The product of the elements of two sparse arrays")
        if np.ndim(other) == 0:
            return self._with(self.data * other)
        if jnp.broadcast_shapes(jnp.shape(other), self.shape) != self.shape:
            _refuse("A product in whose shape there are more zeros")
        whole = jnp.broadcast_to(jnp.asarray(other), self.shape)
        places = self._one("the product with an array")
        return self._with(self.data * whole.at[places].get(mode="fill", fill_value=0))

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, JAXSparse) or np.ndim(other):
            _refuse("Division by an array")
        return self._with(self.data / other)

    def __add__(self, other):
        if isinstance(other, BCOO):
            return _sum_of_two(self, other)
        if jnp.shape(other) != self.shape:
            _refuse("The sum with an array of another shape")
        return self.todense() + other

    __radd__ = __add__

    def __sub__(self, other):
        return self + -other

    def __rsub__(self, other):
        return -self + other

    def __matmul__(self, other):
        if isinstance(other, JAXSparse):
            _refuse("The matrix product of two sparse arrays")
        return _product(self, jnp.asarray(other))

    def __rmatmul__(self, other):
        return _product_from_left(self, jnp.asarray(other))


def _sum_of_two(a, b):
    if a.shape != b.shape or a.n_batch or b.n_batch:
        _refuse(f"The sum of sparse arrays of shapes {a.shape} and {b.shape}")
    data = jnp.concatenate([a.data, b.data])
    return BCOO((data, jnp.concatenate([a.indices, b.indices])), shape=a.shape)


def _check_product(m, x):
    """Raise unless a matrix or a vector, sparse, can be multiplied by an array."""
    if m.n_sparse not in (1, 2):
        _refuse(f"The matrix product with {m.n_sparse} axes that are not a batch")
    if not x.ndim:
        raise ValueError("matmul takes an array of at least 1 axis, and got a number.")
    inner = x.shape[-2:][0]
    if m._sizes[-1] != inner:
        raise TypeError(
            "dot_general requires contracting dimensions to have the same shape, got "
            f"({m._sizes[-1]},) and ({inner},)."
        )


def _product(m, x):
    """Return ``m @ x``: rows of `x` are gathered, multiplied and added up."""
    _check_product(m, x)
    if m.n_batch:
        return vmap(_product, (0, 0 if x.ndim > 2 else None))(m, x)
    if x.ndim > 2:
        return vmap(partial(_product, m))(x)
    rows = x.at[m.indices[:, -1]].get(mode="fill", fill_value=0)
    terms = m.data.reshape(-1, *[1] * (x.ndim - 1)) * rows
    if m.n_sparse == 1:
        return terms.sum(0, dtype=terms.dtype)
    zeros = jnp.zeros((m.shape[0], *x.shape[1:]), terms.dtype)
    return zeros.at[m.indices[:, 0]].add(terms, mode="drop")


def _product_from_left(m, x):
    """Return ``x @ m``."""
    if m.n_batch:
        return vmap(_product_from_left, (0, 0 if x.ndim > 2 else None))(m, x)
    if x.ndim > 2:
        return vmap(partial(_product_from_left, m))(x)
    product = _product(m.T, x.T)
    return product.T if m.n_sparse == 2 else product


def bcoo_fromdense(
    mat: Any,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: Any = np.int32,
) -> BCOO:
    """Return what `BCOO.fromdense` returns.

    Reference: ``jax.experimental.sparse.bcoo_fromdense``.
    """
    how = {"index_dtype": index_dtype, "n_dense": n_dense, "n_batch": n_batch}
    return BCOO.fromdense(mat, nse=nse, **how)


def bcoo_todense(mat: BCOO) -> Any:
    """Return the array with its zeros.

    Reference: ``jax.experimental.sparse.bcoo_todense``.
    """
    return mat.todense()


def todense(arr: Any) -> Any:
    """Return a sparse array with its zeros, and any other as it is.

    Reference: ``jax.experimental.sparse.todense``.
    """
    return arr.todense() if isinstance(arr, JAXSparse) else arr


class _OnlyName(JAXSparse):
    def __init__(self, *args, **kwargs):
        _refuse(f"The format {type(self).__name__}, besides BCOO,")

    @classmethod
    def fromdense(cls, mat, **kwargs):
        """Refuse to make an array of this format."""
        return cls(mat)


class BCSR(_OnlyName):
    """Compressed rows with batches, in JAX.

    Reference: ``jax.experimental.sparse.BCSR``.
    """


class COO(_OnlyName):
    """Coordinates of a matrix without batches, in JAX.

    Reference: ``jax.experimental.sparse.COO``.
    """


class CSR(_OnlyName):
    """Compressed rows, in JAX.

    Reference: ``jax.experimental.sparse.CSR``.
    """


class CSC(_OnlyName):
    """Compressed columns, in JAX.

    Reference: ``jax.experimental.sparse.CSC``.
    """


def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Return a function like `f`, which refuses sparse arguments.

    Args:
      f: a function.
      use_tracer: without effect.

    Raises:
      NotImplementedError: from that function, for a sparse argument: its operators
        work without `sparsify`.

    Reference: ``jax.experimental.sparse.sparsify``.
    """

    @wraps(f)
    def wrapped(*args, **kwargs):
        leaves = tree_leaves((args, kwargs), is_leaf=lambda x: isinstance(x, JAXSparse))
        if any(isinstance(leaf, JAXSparse) for leaf in leaves):
            _refuse("sparsify")
        return f(*args, **kwargs)

    return wrapped
