"""Programs for eight devices, which run on either library: values, texts, errors.

``python -m tests.replica_programs minijax found.pickle`` runs them all and writes what
came out; `tests/oracle/test_replicas.py` compares two such files.
"""

import importlib
import os
import pickle
import re
import sys
from functools import partial

import numpy as np

RING = [(j, (j + 1) % 4) for j in range(4)]
DTYPES = "float32", "int32", "int8", "uint8", "float16", "bfloat16", "complex64", "bool"


class Programs:
    """The programs, by name, of one library.

    Args:
      top: the module ``jax`` or ``minijax``.
    """

    def __init__(self, top):
        self.top, self.jnp, self.lax = top, top.numpy, top.lax
        self.rng = np.random.default_rng(0)
        self.mesh = top.make_mesh(
            (4, 2), ("x", "y"), axis_types=(top.sharding.AxisType.Auto,) * 2
        )
        self.found = {}

    def array(self, *shape, dtype="float32"):
        """Return small whole numbers, so that sums are exact in any order."""
        numbers = self.rng.integers(0, 4, shape)
        if dtype == "complex64":
            numbers = numbers + 1j * self.rng.integers(0, 4, shape)
        return self.jnp.asarray(numbers, dtype)

    def add(self, name, f, *args):
        """Run a program and keep what it gives: arrays, or the class of an error."""
        try:
            leaves = self.top.tree_util.tree_leaves(f(*args))
            self.found[name] = [self.told(x) for x in leaves]
        except Exception as error:
            self.found[name] = [kind.__name__ for kind in type(error).__mro__]

    def told(self, x):
        """Return what is compared of one result."""
        spec = getattr(getattr(x, "sharding", None), "spec", None)
        if isinstance(x, str):
            return x
        x = self.jnp.asarray(x)
        wide = np.asarray(x.astype("float32") if x.dtype == "bfloat16" else x)
        return str(x.dtype), wide, None if spec is None else str(spec)

    def text(self, name, f, *args):
        """Keep the text of a program, without what only JAX writes."""

        def write():
            text = str(self.top.make_jaxpr(f)(*args))
            text = re.sub(r"\s+out_sharding=None", "", text)
            return re.sub(r"\[\s+axes=\((\d+,?)\)\s+\]", r"[axes=(\1)]", text)

        self.add(f"text: {name}", write)

    def collectives(self):
        """Return functions of one example of shape (4, 2), by name."""
        lax = self.lax
        return {
            "psum": lambda v: lax.psum(v, "x"),
            "pmean": lambda v: lax.pmean(v, "x"),
            "pmax": lambda v: lax.pmax(v, "x"),
            "pmin": lambda v: lax.pmin(v, "x"),
            "gather": lambda v: lax.all_gather(v, "x"),
            "gather 1": lambda v: lax.all_gather(v, "x", axis=1),
            "gather tiled": lambda v: lax.all_gather(v, "x", axis=1, tiled=True),
            "scatter": lambda v: lax.psum_scatter(v, "x"),
            "scatter tiled": lambda v: lax.psum_scatter(v, "x", tiled=True),
            "exchange": lambda v: lax.all_to_all(v, "x", 0, 0),
            "exchange 01": lambda v: lax.all_to_all(v, "x", 0, 1),
            "exchange tiled": lambda v: lax.all_to_all(v, "x", 0, 1, tiled=True),
            "permute": lambda v: lax.ppermute(v, "x", RING),
            "permute partly": lambda v: lax.ppermute(v, "x", [(0, 2)]),
            "shuffle": lambda v: lax.pshuffle(v, "x", [1, 0, 3, 2]),
            "swap": lambda v: lax.pswapaxes(v, "x", 0),
            "index": lambda v: v + lax.axis_index("x").astype(v.dtype),
            "size": lambda v: v * lax.axis_size("x"),
        }

    def values(self):
        """Run each collective with some dtype, under pmap and a checked shard_map."""
        top, P = self.top, self.top.P
        for i, (name, f) in enumerate(self.collectives().items()):
            for dtype in DTYPES if name == "psum" else (DTYPES[i % len(DTYPES)],):
                x = self.array(4, 4, 2, dtype=dtype)
                self.add(f"pmap {name} {dtype}", top.pmap(f, "x"), x)
            flat = self.array(16, 2)
            fold = name in ("psum", "pmean", "pmax", "pmin")
            how = {"mesh": self.mesh, "in_specs": P("x"), "check_vma": i % 3 != 0}
            mapped = top.shard_map(f, out_specs=P() if fold else P("x"), **how)
            self.add(f"shard_map {name}", self.quick(mapped), flat)
            many = top.vmap(mapped, 2, 2)
            if name not in ("pmax", "pmin"):
                slope = top.grad(lambda x, many=many: (many(x) ** 2).sum())
                self.add(f"slope {name}", self.quick(slope), flat[:, :, None])

    def several_names(self):
        """Run collectives over both axes of the mesh, in both orders."""
        top, lax, P = self.top, self.lax, self.top.P
        x, both = self.array(16, 8), ("x", "y")
        some = [(0, 3), (3, 1), (1, 2), (5, 0)]
        ends = {"in_specs": P("x"), "out_specs": P(both), "check_vma": False}
        for names in both, both[::-1]:
            bodies = {
                "gather": lambda v, n=names: lax.all_gather(v, n),
                "gather 1": lambda v, n=names: lax.all_gather(v, n, axis=1),
                "gather tiled": lambda v, n=names: lax.all_gather(v, n, tiled=True),
                "scatter": lambda v, n=names: lax.psum_scatter(
                    v, n, scatter_dimension=1
                ),
                "scatter tiled": lambda v, n=names: lax.psum_scatter(
                    v, n, scatter_dimension=1, tiled=True
                ),
                "permute": lambda v, n=names: lax.ppermute(v, n, some),
            }
            for name, f in bodies.items():

                def differing(v, f=f):
                    return f(v * (1 + lax.axis_index("y").astype(v.dtype)))

                mapped = top.shard_map(differing, mesh=self.mesh, **ends)
                self.add(f"{name} over {names}", self.quick(mapped), x)
                slope = top.grad(lambda v, f=mapped: (f(v) ** 2).sum())
                self.add(f"slope {name} over {names}", self.quick(slope), x)
            for extreme in lax.pmax, lax.pmin:
                partly = top.shard_map(
                    lambda v, f=extreme, n=names: f(v, n),
                    mesh=self.mesh, in_specs=P("x"), out_specs=P(),
                )  # fmt: skip
                self.add(f"{extreme.__name__} over {names}", self.quick(partly), x)

    def quick(self, f):
        """Return a function that JAX runs as a whole, and fetch its result.

        JAX's eager shard_map runs operation by operation, each of them compiled.
        """
        f = self.top.jit(f) if self.top.__name__ == "jax" else f
        return lambda *args: self.top.tree_util.tree_map(np.asarray, f(*args))

    def bodies(self):
        """Return functions of a weight and a block of eight numbers, by name."""
        lax, jnp, grad = self.lax, self.jnp, self.top.grad

        def loop(w, v):
            start = lax.pcast(w, "x", to="varying")
            step = lambda c, r: (jnp.sin(c) * r * w + lax.psum(c, "x") * 0.1, c)  # noqa: E731
            return lax.psum(lax.scan(step, start, v)[0], "x")

        def turns(w, v):
            def go_on(c):
                return lax.psum(c, "x").sum() < 100

            return lax.psum(lax.while_loop(go_on, lambda c: c * 2 + 1, v * w), "x")

        def choice(w, v):
            yes, no = lambda b: b * w, lambda b: jnp.sin(b) * w
            return lax.psum(lax.cond(v[0] > 2, yes, no, v).sum(), "x")

        return {
            "sum": lambda w, v: lax.psum((w * jnp.sin(v * w)).sum(), "x"),
            "slope": lambda w, v: grad(lambda w: (w * v).sum())(w),
            "slope of sum": lambda w, v: grad(
                lambda w: lax.psum((w * v).sum(), "x")
            )(w),
            "curve": lambda w, v: grad(grad(lambda w: (jnp.sin(w * v)).sum()))(w),
            "loop": loop,
            "slope of loop": lambda w, v: grad(lambda w: loop(w, v))(w),
            "turns": turns,
            "choice": choice,
            "slope of choice": lambda w, v: grad(lambda w: choice(w, v))(w),
            "jit": lambda w, v: self.top.jit(lambda b: lax.psum(b * w, "x"))(v),
            "tree": lambda w, v: lax.psum({"a": v * w, "b": v}, "x"),
            "bools": lambda w, v: lax.psum(v > w, "x"),
            "one": lambda w, v: w * lax.psum(1, "x"),
            "same": lambda w, v: lax.psum(w, "x"),
            "greatest": lambda w, v: lax.pmax(w, "x"),
            "mean": lambda w, v: lax.pmean(v * w, "x"),
            "remat": lambda w, v: lax.psum(
                self.top.checkpoint(lambda w: jnp.sin(w * v).sum())(w), "x"
            ),
        }

    def gradients(self):
        """Run bodies in shard_map, and their derivatives from outside; and texts."""
        top, P = self.top, self.top.P
        v, w = self.jnp.arange(8.0) / 4, self.jnp.float32(1.5)
        for name, f in self.bodies().items():
            for check in (True, False):
                how = {"mesh": self.mesh, "in_specs": (P(), P("x")), "out_specs": P()}
                mapped = top.shard_map(f, check_vma=check, **how)
                if check and name not in ("turns",):
                    self.text(name, mapped, w, v)
                self.add(f"{name} {check}", self.quick(mapped), w, v)
                alone = "curve", "slope of loop"  # differ between devices, unchecked
                if name in ("turns", "bools", "greatest", "tree", *alone[check * 2 :]):
                    continue

                def total(w, mapped=mapped):
                    return self.jnp.sin(mapped(w, v)).sum()

                self.add(f"grad {name} {check}", self.quick(top.grad(total)), w)
                if name in ("sum", "loop", "choice") and check:
                    twice = self.quick(top.grad(top.grad(total)))
                    self.add(f"grad of grad {name}", twice, w)
                    tangent = lambda w, f=total: top.jvp(f, (w,), (w,))[1]  # noqa: E731
                    self.add(f"jvp {name}", self.quick(tangent), w)
                    many = self.quick(top.vmap(mapped, (0, None)))
                    self.add(f"vmap {name}", many, self.jnp.stack([w, 2 * w]), v)

    def texts(self):
        """Keep the texts of single collectives, and of pmap."""
        top, P = self.top, self.top.P
        x = self.array(16, 2)
        for name, f in self.collectives().items():
            how = {"mesh": self.mesh, "in_specs": P("x")}
            fold = name in ("psum", "pmean", "pmax", "pmin")
            for check in (True, False):
                mapped = top.shard_map(
                    f, out_specs=P() if fold else P("x"), check_vma=check, **how
                )
                self.text(f"{name} {check}", mapped, x)
        self.text("pmap", top.pmap(lambda v: self.lax.psum(v, "i"), "i"), x[:4])
        axes = {"in_axes": (1, None), "out_axes": (1, None)}
        self.text("axes", top.pmap(lambda a, b: (a * b, b), "i", **axes), x[:4].T, 1.0)

    def faces(self):
        """Run options and refusals of pmap and shard_map."""
        top, jnp, P, lax = self.top, self.jnp, self.top.P, self.lax
        pmap, x, v = top.pmap, self.array(4, 2), jnp.arange(8.0)
        cut = {"mesh": self.mesh, "in_specs": P("x"), "out_specs": P("x")}
        self.add("static", pmap(lambda a, k: a * k, static_broadcasted_argnums=1), x, 3)
        self.add("first", pmap(lambda a: a, out_axes=None), x)
        self.add("keywords", lambda: pmap(lambda a, b: a + b)(x, b=x))
        axes = {"in_axes": (1, None), "out_axes": 1}
        self.add("axes", pmap(lambda a, b: a * b, **axes), x.T, 2.0)
        self.add("too many", pmap(lambda a: a), jnp.zeros((9, 2)))
        self.add("sizes", pmap(lambda a, b: a), x, x[:3])
        self.add("nested", pmap(pmap(lambda a: a)), jnp.zeros((2, 2, 2)))
        self.add("no argument", pmap(lambda: 1.0))
        self.add("none mapped", pmap(lambda a: a, in_axes=None), 1.0)
        self.add("size", pmap(lambda a: a, axis_size=3), x)
        self.add("axes prefix", pmap(lambda a: a, in_axes=(0, 0)), x)
        self.add("axes type", lambda: pmap(lambda a: a, in_axes="x")(x))
        self.add("unbound", lambda: lax.psum(v, "x"))
        for name, changes in {
            "not divisible": {}, "unknown axis": {"in_specs": P("z")},
            "long": {"in_specs": P("x", "y")}, "no mesh": {"mesh": None},
            "bad mesh": {"mesh": 3}, "replicated": {"out_specs": P()},
            "prefix": {"in_specs": (P("x"), P("x"))},
        }.items():  # fmt: skip
            arg = v[:7] if name == "not divisible" else v
            run = lambda arg, how=cut | changes: top.shard_map(lambda a: a, **how)(arg)  # noqa: E731
            self.add(name, run, arg)
        for name, f in {
            "rank": lambda a: a.sum(),
            "mixed": lambda a: lax.psum(a, ("x", "y")),
            "cast": lambda a: lax.pcast(a, "x", to="varying"),
            "cast to": lambda a: lax.pcast(a, "x", to="what"),
            "carry": lambda a: lax.scan(lambda c, r: (c + r, c), 0.0, a)[1],
            "fori": lambda a: lax.fori_loop(0, 3, lambda i, c: c + a, jnp.zeros(2)),
            "while": lambda a: lax.while_loop(
                lambda c: c[0] < 3, lambda c: c + a, jnp.zeros(2)
            ),
            "branches": lambda a: lax.cond(
                a[0] > 0, lambda b: b, lambda b: jnp.ones(2), a
            ),
            "decided": lambda a: lax.cond(a[0] > 3, lambda: 1.0, lambda: 2.0) * a,
            "inner": lambda a: top.shard_map(lambda b: b, **cut)(a),
        }.items():
            self.add(name, top.shard_map(f, **cut), v)
        both = P(("x", "y"))
        self.add(
            "two axes",
            top.shard_map(
                lambda a: lax.psum(a * lax.axis_index(("x", "y")), ("x", "y")),
                mesh=self.mesh, in_specs=both, out_specs=P(),
            ),
            v,
        )  # fmt: skip
        some = {"mesh": self.mesh, "axis_names": {"x"}, "out_specs": P()}
        self.add("some axes", top.shard_map(partial(lax.psum, axis_name="x"),
                                            in_specs=P("x"), **some), v)  # fmt: skip

    def groups(self):
        """Run collectives among groups of an axis, in every way, and the refusals."""
        top, lax, P, x = self.top, self.lax, self.top.P, self.array(4, 4)
        two, uneven = [[0, 2], [3, 1]], [[0], [1, 2, 3]]
        some = {
            "psum": lambda v: lax.psum(v, "x", axis_index_groups=two),
            "psum of a tree": lambda v: lax.psum((v, v[0]), "x", axis_index_groups=two),
            "pmean": lambda v: lax.pmean(v, "x", axis_index_groups=two),
            "pmax": lambda v: lax.pmax(v, "x", axis_index_groups=two),
            "gather": lambda v: lax.all_gather(v, "x", axis_index_groups=two),
            "scatter": lambda v: lax.psum_scatter(
                v, "x", axis_index_groups=two, tiled=True
            ),
            "exchange": lambda v: lax.all_to_all(
                v, "x", 0, 0, axis_index_groups=two, tiled=True
            ),
            "size": lambda v: v * lax.psum(1, "x", axis_index_groups=two),
            "uneven": lambda v: lax.psum(v, "x", axis_index_groups=uneven),
            "slope": top.grad(
                lambda v: (lax.psum(v * v, "x", axis_index_groups=two) * v).sum()
            ),
            "twice": lambda v: lax.psum(v, "x", axis_index_groups=[[0, 1], [1, 2, 3]]),
            "outside": lambda v: lax.psum(v, "x", axis_index_groups=[[0, 1], [2, 4]]),
        }
        for name, f in some.items():
            for check in (True, False):
                how = {"mesh": self.mesh, "in_specs": P("x"), "out_specs": P("x")}
                each = lambda v, f=f: top.tree.map(lambda y: y[None], f(v[0]))  # noqa: E731
                mapped = top.shard_map(each, check_vma=check, **how)
                self.add(f"groups {name} {check}", self.quick(mapped), x)
                if name in ("psum", "pmax", "gather", "scatter") and not check:
                    self.text(f"groups {name}", mapped, x)
            self.add(f"groups {name} pmap", self.quick(top.pmap(f, "x")), x)
            if name != "size":
                self.add(f"groups {name} vmap", top.vmap(f, axis_name="x"), x)

    def run(self):
        """Run everything, and return what was found by name."""
        parts = self.values, self.gradients, self.texts, self.faces, self.groups
        for part in (*parts, self.several_names):
            part()
        return self.found


def main(library, path):
    """Run all programs in a library on eight devices, and write what was found."""
    top = importlib.import_module(library)
    top.config.update("jax_num_cpu_devices", 8)
    with open(path, "wb") as file:
        pickle.dump(Programs(top).run(), file)


if __name__ == "__main__":
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
    main(*sys.argv[1:])
