"""The public names of JAX by module, which `tests/data/public_names.json` records.

`make oracle-record` writes the record, and the page of compatibility is made from it.
"""

import importlib
import inspect
import json
import types
import warnings
from pathlib import Path

RECORD = Path(__file__).parent / "data" / "public_names.json"
MODULES = [
    "",
    *"""
    numpy numpy.linalg numpy.fft lax lax.linalg random nn nn.initializers tree tree_util
    flatten_util ops image debug custom_batching custom_derivatives
    ad_checkpoint sharding stages export errors typing dtypes dlpack distributed
    profiler ref scipy scipy.cluster.vq scipy.fft scipy.integrate scipy.interpolate
    scipy.linalg scipy.ndimage scipy.optimize scipy.signal scipy.sparse.linalg
    scipy.spatial.transform scipy.special scipy.stats experimental.checkify
    example_libraries.stax example_libraries.optimizers test_util core api_util
    extend.core extend.core.primitives extend.linear_util extend.backend extend.random
    extend.source_info_util interpreters.ad interpreters.batching
    interpreters.mlir interpreters.partial_eval interpreters.xla
    """.split(),
    *[
        f"scipy.stats.{name}"
        for name in """
        bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom
        gumbel_l gumbel_r laplace logistic multinomial multivariate_normal nbinom norm
        pareto poisson t truncnorm uniform vonmises wrapcauchy
        """.split()
    ],
]


def found_in(root, path):
    """Return a module of a package, or None; `path` is "" for the package itself."""
    try:
        return importlib.import_module(f"{root}.{path}".rstrip("."))
    except ModuleNotFoundError:
        above, _, name = path.rpartition(".")
        return getattr(found_in(root, above), name, None) if name else None


def parameters(value):
    """Return the names of a function's parameters, or None where nobody can tell."""
    if inspect.isclass(value) or not callable(value):
        return None
    try:
        found = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [stars.get(each.kind, "") + each.name for each in found]


def names_of(root, path):
    """Return the public names of a module of JAX, each with its parameters or None."""
    module, found = found_in(root, path), {}
    for name in dir(module):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = getattr(module, name, None)
        if not name.startswith("_") and is_public(root, path, value):
            found[name] = parameters(value)
    return found


def is_public(root, path, value):
    """Return whether a value is offered by a module, and not only used in it."""
    if isinstance(value, types.ModuleType):  # modules are listed by themselves
        return False
    if not path.startswith("example_libraries"):
        return True
    place = getattr(value, "__module__", None)
    return place in (None, f"{root}.{path}")


def recorded():
    """Return the record: JAX's version, and the names of each module."""
    return json.loads(RECORD.read_text(encoding="utf-8"))
