"""Where arrays are and where programs run, on two devices, beside JAX."""

import pickle
import threading

import jax
import numpy as np
import pytest

import minijax


class Side:
    """One of the two libraries, with arrays in all places there are."""

    def __init__(self, top):
        self.top, self.jnp, self.lax = top, top.numpy, top.lax
        self.first, self.second = top.devices()
        self.free = self.jnp.arange(3.0)
        self.here = top.device_put(self.free, self.first)
        self.there = top.device_put(self.free, self.second)
        with top.default_device(self.second):
            self.strayed = self.jnp.arange(3.0)
        self.sharding = top.sharding.SingleDeviceSharding(self.second)
        self.first_sharding = top.sharding.SingleDeviceSharding(self.first)
        self.kinds = self.free, self.here, self.there, self.strayed, 1.0, np.ones(3)

    def donated(self, donated, other):
        """Return the result of a sum that may take the memory of its first operand."""
        donated = self.top.device_put(donated, may_alias=False)
        result = self.top.jit(lambda x, y: x + y, donate_argnums=0)(donated, other)
        return result, donated.is_deleted()

    def deleted(self):
        """Return an array that has been deleted."""
        x = self.jnp.ones(3)
        x.delete()
        return x


def names(function):
    """Return the functions of a class by name, without the class."""
    return {k: v for k, v in vars(function).items() if not k.startswith("_")}


@names
class PROGRAMS:
    def eager(s):
        return [s.free + 1, s.there + 1, s.free + s.there, s.there * np.ones(3)]

    def strayed(s):
        return [s.strayed, s.strayed + 1, s.strayed + s.free, s.strayed[0]]

    def jitted(s):
        f = s.top.jit(lambda x, y: x + y)
        return [f(s.free, s.there), f(s.free, s.free), f(s.here, 1.0), f(s.strayed, 1)]

    def jitted_identity(s):
        f = s.top.jit(lambda x, y: (x, y + 1))
        return [f(s.there, s.free), f(s.strayed, s.free)]

    def unneeded(s):
        f = s.top.jit(lambda x, y: x + 1)
        return [f(s.free, s.there), f(s.here, s.there), f(s.there, s.here)]

    def kept(s):
        return s.top.jit(lambda x, y: x + 1, keep_unused=True)(s.free, s.there)

    def closed_over(s):
        f = s.top.jit(lambda x: x + s.there)
        return [f(s.free), f(s.here), f(s.there)]

    def results_of_constants(s):
        return s.top.jit(lambda x: (x, s.jnp.ones(3), 1.0))(s.there)

    def nothing_given(s):
        return s.top.jit(lambda: s.jnp.ones(2))()

    def twice(s):
        f = s.top.jit(lambda x: x * 2)
        return [f(x) for x in (s.free, s.there, s.here, s.free, s.there, s.here) * 3]

    def gradients(s):
        f = s.top.jit(lambda x, y: (x * y).sum())
        grad = s.top.grad(f)
        return [grad(s.there, s.there), s.top.jit(grad)(s.free, s.there)]

    def jvps(s):
        return s.top.jvp(lambda x: s.jnp.sin(x) * x, (s.there,), (s.free,))

    def batches(s):
        return s.top.vmap(lambda x, y: x * y, (0, None))(s.free, s.there)

    def like(s):
        like = s.jnp.zeros_like, s.jnp.ones_like, s.jnp.asarray, s.jnp.array
        return [f(x) for f in like for x in (s.free, s.there, s.strayed)]

    def shapes(s):
        x = s.there
        return [x.reshape(3, 1), x.T, x[0], x.astype("int32"), x.copy(), list(x)]

    def loops(s):
        lax = s.lax
        return [
            lax.scan(lambda c, x: (c + x, c), 0.0, s.there),
            lax.while_loop(lambda x: x[0] < 3, lambda x: x + 1, s.there),
            lax.cond(True, lambda x: x + 1, lambda x: x, s.there),
            lax.fori_loop(0, 3, lambda i, x: x + i, s.there),
        ]

    def keys(s):
        key = s.top.random.key(0)
        return s.top.random.normal(s.top.device_put(key, s.second), (3,))

    def called_back(s):
        shape = s.top.ShapeDtypeStruct((3,), "float32")
        return s.top.pure_callback(lambda x: np.asarray(x) * 2, shape, s.there)

    def default_device(s):
        with s.top.default_device(s.second):
            f = s.top.jit(lambda x: x + 1)
            made = s.jnp.ones(3), s.jnp.array([1]), s.lax.iota("int32", 2)
            put = s.top.device_put(np.ones(3)), s.top.device_put(s.free)
            ran = f(s.free), f(s.here), f(1.0), s.free * 2, s.here * 2
            scanned = s.lax.scan(lambda c, x: (c + x, c), 0.0, s.free)
            return made, put, ran, scanned, s.top.random.key(0)

    def default_platform(s):
        with s.top.default_device("cpu"):
            return s.jnp.ones(3)

    def put(s):
        put = s.top.device_put
        places = None, s.first, s.second, s.sharding
        arrays = s.free, s.here, s.there, s.strayed, 1.0, np.ones(3)
        return [put(x, place) for x in arrays for place in places]

    def put_trees(s):
        tree = {"x": [s.free, 1.0], "y": s.there}
        return s.top.device_put(tree, {"x": s.second, "y": None})

    def put_in_a_program(s):
        f = s.top.jit(lambda x: s.top.device_put(x, s.second) * 2)
        return [f(s.free), f(s.here)]

    def put_and_differentiated(s):
        def f(x):
            return (s.top.device_put(x, s.second) * x[0]).sum()

        def there_and_back(x):
            x = s.top.device_put(s.jnp.sin(x), s.second)
            return s.top.device_put(x, s.first).sum()

        value = s.top.device_put(2.0, s.first)
        return [
            s.top.grad(lambda x: s.top.device_put(x, s.second) ** 2)(value),
            s.top.jit(s.top.grad(f))(s.free), s.top.grad(there_and_back)(s.free),
        ]  # fmt: skip

    def put_with_tangents(s):
        f = lambda x: s.top.device_put({"x": x, "one": 1.0}, s.second)  # noqa: E731
        return s.top.jvp(f, (s.free,), (s.free,)), s.top.linearize(f, s.free)[1](s.here)

    def put_examples(s):
        f = lambda x: s.top.device_put((x, s.free), (s.second, None))  # noqa: E731
        return s.top.vmap(f, out_axes=(0, None))(s.free)

    def put_as_text(s):
        put = s.top.device_put
        programs = [
            lambda x: put(x), lambda x: put({"x": x, "y": (x, 1.0)}, s.second),
            lambda x: put(x, s.sharding, may_alias=True), lambda x: put(x, donate=True),
            lambda x: put(x, may_alias=False), lambda x: put([x, x], [None, s.first]),
            s.top.grad(lambda x: put(x, s.second).sum()),
        ]  # fmt: skip
        texts = [str(s.top.make_jaxpr(f)(s.free)) for f in programs]
        return [text.replace(" out_sharding=None", "") for text in texts]

    def put_in_loops(s):
        def turn(c, x):
            return s.top.device_put(c + x, s.second), c

        f = lambda x: s.lax.scan(turn, 0.0, x)  # noqa: E731
        return f(s.free), s.top.grad(lambda x: f(x)[0])(s.free)

    def donated(s):
        pairs = (s.free, s.there), (s.there, s.free), (s.free, s.free)
        return [s.donated(*pair) for pair in pairs]

    def jitted_for_a_device(s):
        f = s.top.jit(lambda x: x + 1, device=s.second)
        return [f(x) for x in (s.free, s.here, s.there, 1.0)]

    def jitted_for_a_platform(s):
        f = s.top.jit(lambda x: x + 1, backend="cpu")
        return [f(x) for x in (s.free, s.here, s.there, 1.0)]

    def jitted_for_a_device_inside(s):
        inner = s.top.jit(lambda x: x * 2, device=s.second)
        f = s.top.jit(lambda x: inner(x) + 1)
        return [f(s.free), f(s.there), inner(s.free)]

    def compiled(s):
        f = s.top.jit(lambda x, y: x + y)
        there = f.lower(s.there, s.free).compile()
        here = f.lower(s.free, s.free).compile()
        return [
            there(s.free, s.free), there(s.there, np.ones(3, "float32")),
            here(s.free, s.here), here(s.strayed, s.free),
            str(there.input_shardings), str(here.output_shardings),
        ]  # fmt: skip

    def compiled_for_the_default(s):
        with s.top.default_device(s.second):
            run = s.top.jit(lambda x: x + 1).lower(s.free).compile()
        return [run(s.free), run(np.ones(3, "float32"))]

    def asked(s):
        return [
            [str(x.sharding), x.sharding == s.sharding, x.is_fully_addressable,
             str(x.addressable_shards), x.addressable_data(0), str(x.devices()),
             x.is_ready(), x.on_device_size_in_bytes(), x.platform(),
             x.copy_to_host_async(), x.is_fully_replicated]
            for x in (s.free, s.here, s.there)
        ]  # fmt: skip

    def shardings(s):
        sharding = s.sharding
        return [
            sharding.is_equivalent_to(s.here.sharding, 1), sharding.memory_kind,
            sharding.shard_shape((3, 2)), str(sharding.devices_indices_map((3, 2))),
            str(sharding.addressable_devices), sharding.num_devices, str(sharding),
        ]  # fmt: skip

    def devices(s):
        top, second = s.top, s.second
        return [
            str(top.devices()), str(top.local_devices(0)), top.device_count("cpu"),
            top.local_device_count(), top.process_index(), top.process_count(),
            top.process_indices(), str(second), repr(second), second.id,
            second.platform, second.device_kind, second.local_hardware_id,
            isinstance(second, top.Device), second.memory_stats(),
            second.process_index,
        ]  # fmt: skip

    def deleted(s):
        x = s.deleted()
        return [str(x.sharding), x.committed, x.is_fully_addressable]

    def in_shardings(s):
        f = s.top.jit(lambda x: x + 1, in_shardings=s.sharding)
        return [f(x) for x in s.kinds * 2]

    def in_shardings_of_some(s):
        f = s.top.jit(lambda x, y: x["u"] + y, in_shardings=({"u": s.sharding}, None))
        g = s.top.jit(lambda x, y: x + y, in_shardings=[None, s.first_sharding])
        x = s.free
        return [f({"u": x}, x), f({"u": s.here}, s.there), g(x, x), g(s.here, s.there)]

    def no_in_shardings(s):
        f = s.top.jit(lambda x: x + 1, in_shardings=None, out_shardings=None)
        g = s.top.jit(lambda x: x + 1, in_shardings=(None,))
        return [f(x) for x in s.kinds], [g(x) for x in s.kinds], f(x=s.there)

    def out_shardings(s):
        f = s.top.jit(lambda x: (x, {"y": x + 1, "z": 1}), out_shardings=s.sharding)
        wanted = (None, {"y": s.sharding, "z": None})
        g = s.top.jit(lambda x: (x, {"y": x + 1, "z": 1}), out_shardings=wanted)
        return [h(x) for h in (f, g) for x in (s.free, s.there, 1.0)], f(x=s.free)

    def shardings_without_arguments(s):
        ones = lambda: s.jnp.ones(2)  # noqa: E731
        made = s.top.jit(ones, out_shardings=s.sharding)()
        return made, [s.top.jit(ones, in_shardings=x)() for x in (s.sharding, (), None)]

    def shardings_and_static_arguments(s):
        f = lambda x, n: x * n  # noqa: E731
        wanted = s.sharding, (s.sharding,)
        return [
            s.top.jit(f, static_argnums=1, in_shardings=x)(s.here, 3) for x in wanted
        ]

    def shardings_of_unneeded_arguments(s):
        f = s.top.jit(lambda x, y: x + 1, in_shardings=(None, s.sharding))
        return [f(x, y) for x in s.kinds[:4] for y in s.kinds[:4]]

    def shardings_under_the_default(s):
        with s.top.default_device(s.second):
            f = s.top.jit(lambda x: x + 1, in_shardings=s.first_sharding)
            g = s.top.jit(lambda x: x + 1, out_shardings=s.first_sharding)
            return f(s.free), f(s.there), g(s.free), g(1.0)

    def shardings_transformed(s):
        f = s.top.jit(lambda x: s.jnp.sin(x) * x, in_shardings=s.sharding)
        g = s.top.jit(lambda x: s.jnp.sin(x) * x, out_shardings=s.sharding)
        return [
            [s.top.grad(total_after(h))(s.free), s.top.vmap(h)(s.free),
             s.top.jvp(h, (s.free,), (s.free,)), s.top.linearize(h, s.free)[1](s.free),
             s.top.jit(s.top.grad(total_after(h)))(s.free)]
            for h in (f, g)
        ] + [s.top.jvp(f, (s.here,), (s.free,)), s.top.vmap(f)(s.here)]  # fmt: skip

    def shardings_inside(s):
        inner = s.top.jit(lambda x: x * 2, in_shardings=s.sharding)
        other = s.top.jit(lambda x: x * 2, out_shardings=s.sharding)
        f = s.top.jit(lambda x: inner(x) + other(x))
        scanned = s.lax.scan(lambda c, x: (inner(c) + x, c), 0.0, s.free)
        looped = s.lax.fori_loop(0, 3, lambda i, x: other(x), s.free)
        chosen = s.lax.cond(True, inner, lambda x: x, s.free)
        return f(s.free), f(s.there), f(1.0), scanned, looped, chosen

    def shardings_as_text(s):
        inner = [
            s.top.jit(lambda x: x + 1, in_shardings=s.sharding),
            s.top.jit(lambda x: x + 1, out_shardings=s.sharding),
            s.top.jit(
                lambda x: x + 1, in_shardings=s.sharding, out_shardings=s.sharding
            ),
            s.top.jit(lambda x: x + 1, in_shardings=None),
        ]
        texts = [str(s.top.make_jaxpr(lambda x, f=f: f(x))(s.free)) for f in inner]
        two = s.top.jit(lambda x, y: x + y, in_shardings=(None, s.sharding))
        return texts, str(s.top.make_jaxpr(lambda x: two(x, x))(s.free))

    def shardings_in_stages(s):
        f = s.top.jit(lambda x: (x + 1, x), in_shardings=s.sharding)
        wanted = s.sharding, None
        g = s.top.jit(lambda x: (x + 1, x), out_shardings=wanted)
        stages = [h.lower(s.free) for h in (f, g)]
        runs = [stage.compile() for stage in stages]
        return [
            [str(stage.out_info) for stage in stages], [run(s.free) for run in runs],
            [str((x.input_shardings, x.output_shardings)) for x in runs],
            [str(h.eval_shape(s.free)) for h in (f, g)],
            [str(s.top.eval_shape(h, s.free)) for h in (f, g)],
            [str(h.trace(s.free).out_info) for h in (f, g)], runs[0](s.there),
            f.lower(s.here).compile()(s.free),
        ]  # fmt: skip

    def shardings_and_donation(s):
        x = s.top.device_put(s.free, may_alias=False)
        there = s.top.device_put(s.there, may_alias=False)
        f = s.top.jit(lambda x: x + 1, in_shardings=s.sharding, donate_argnums=0)
        return f(x), x.is_deleted(), f(there), there.is_deleted()

    def structs(s):
        top = s.top
        kinds = [{}, {"sharding": s.sharding}, {"weak_type": True},
                 {"sharding": s.sharding, "weak_type": True}]  # fmt: skip
        structs = [top.ShapeDtypeStruct((3,), "float32", **kind) for kind in kinds]
        f = top.jit(lambda x: x + 1)
        lowered = [f.lower(x).compile() for x in structs]
        return [
            [str(x) for x in structs], [x == y for x in structs for y in structs],
            [hash(x) == hash(structs[0]) for x in structs],
            [str(x.update(shape=(2,))) for x in structs],
            [run(s.free) for run in lowered],
            [str(top.eval_shape(lambda x: (x, x + 1), x)) for x in structs],
            [str(run.input_shardings) for run in lowered],
            str(top.ShapeDtypeStruct.like(s.free)), structs[1].sharding == s.sharding,
            str(top.ShapeDtypeStruct.like(1.0)),
        ]  # fmt: skip

    def manual_axes(s):
        kind = s.top.sharding.ManualAxisType
        some = kind(varying={"i"}), kind(unreduced={"i", "j"}), kind()
        struct = s.top.ShapeDtypeStruct((3,), "float32", manual_axis_type=some[0])
        return [
            repr(some[0]), some[0] == kind(varying=frozenset("i")), some[2].empty,
            repr(some[0].update(varying=frozenset())), str(struct),
            s.top.typeof(s.free).manual_axis_type is kind(), some[1].varying,
            str(s.top.typeof(s.free)), s.top.typeof(s.free).mat.empty,
        ]  # fmt: skip

    def creation(s):
        jnp, out = s.jnp, []
        for place in (s.second, s.sharding, s.first, None):
            out += [
                jnp.zeros(3, device=place), jnp.ones((2,), device=place),
                jnp.full(2, 7, device=place), jnp.arange(3, device=place),
                jnp.eye(2, device=place), jnp.linspace(0, 1, 3, device=place),
                jnp.array([1.0], device=place), jnp.asarray([1], device=place),
                jnp.asarray(1.0, device=place), jnp.zeros_like(s.here, device=place),
                jnp.full_like(s.there, 2, device=place), jnp.empty(2, device=place),
                jnp.ones_like(s.free, device=place), jnp.identity(2),
                jnp.full((2,), s.there[0]), jnp.array(1.0, device=place),
            ]  # fmt: skip
        return out

    def creation_in_a_program(s):
        f = s.top.jit(lambda x: x + s.jnp.ones(3))
        with s.top.default_device(s.second):
            inside = f(s.free), f(s.here), f(1.0)
        return inside, f(s.free), f(s.there), f(1.0)

    def threads(s):
        found = []

        def other(device):
            with s.top.default_device(device):
                found.append([s.jnp.ones(3), s.top.jit(lambda x: x * 2)(s.free)])

        def plain():
            found.append([s.jnp.ones(3), s.top.jit(lambda x: x * 2)(1.0)])

        calls = [(other, (s.second,)), (other, (s.first,)), (plain, ())]
        with s.top.default_device(s.second):
            for call, args in calls:
                thread = threading.Thread(target=call, args=args)
                thread.start()
                thread.join()
        return found

    def callbacks(s):
        seen = []

        def look(x):
            seen.append((x.device.id, x.committed, s.jnp.ones(1).device.id))
            return np.asarray(x)

        def call(x):
            s.top.debug.callback(look, x)
            return s.top.pure_callback(look, x, x)

        results = [f(x) for f in (call, s.top.jit(call)) for x in s.kinds[:4]]
        with s.top.default_device(s.second):
            results += [f(x) for f in (call, s.top.jit(call)) for x in s.kinds[:4]]
        s.top.effects_barrier()
        return results, sorted(set(seen))

    def callbacks_that_return_arrays_of_other_places(s):
        f = lambda x: s.top.pure_callback(lambda y: s.there, s.free, x)  # noqa: E731
        return [g(x) for g in (f, s.top.jit(f)) for x in (s.free, s.here, s.there)]

    def random_keys(s):
        key = s.top.random.key(0)
        there = s.top.device_put(key, s.second)
        random = s.top.random
        return [
            random.split(there), random.fold_in(there, 1), random.key_data(there),
            random.uniform(there, (2,)), random.randint(there, (2,), 0, 9),
            random.permutation(there, s.free), random.bits(there, (2,)),
            random.wrap_key_data(random.key_data(there)), random.PRNGKey(0),
            random.normal(s.top.device_put(random.PRNGKey(0), s.second), (2,)),
        ]  # fmt: skip

    def custom_rules(s):
        @s.top.custom_jvp
        def f(x):
            return s.jnp.sin(x)

        f.defjvps(lambda t, out, x: t * s.there[0])

        @s.top.custom_vjp
        def g(x):
            return s.jnp.sin(x)

        g.defvjp(lambda x: (g(x), x), lambda x, ct: (ct * x,))
        return [
            s.top.grad(total_after(h))(x)
            for h in (f, g) for x in (s.free, s.there)
        ] + [f(s.there), g(s.there), s.top.checkpoint(f)(s.there)]  # fmt: skip

    def pickles(s):
        copies = [pickle.loads(pickle.dumps(x)) for x in s.kinds[:4]]
        with s.top.default_device(s.second):
            return copies, [pickle.loads(pickle.dumps(x)) for x in s.kinds[:4]]

    def put_with_a_source(s):
        put = s.top.device_put
        return [
            put(s.free, s.second, src=s.first), put(s.there, s.first, src=s.second),
            put([s.free, s.there], s.sharding, src=[s.first_sharding, None]),
            put(s.free, s.second, may_alias=True), put(s.here, None, may_alias=False),
            put(s.there, s.sharding, donate=False),
        ]  # fmt: skip

    def put_and_given_up(s):
        out = []
        for x in (s.free, s.here, s.there):
            for place in (None, s.first, s.second):
                given = s.top.device_put(x, may_alias=False)
                out += [s.top.device_put(given, place, donate=True)]
        return out

    def borrowed(s):
        numbers = np.ones(64, "float32")
        top = s.top.dlpack.from_dlpack
        return [top(numbers), top(numbers, device=s.second)]


MIXED = {
    "add": lambda s: s.lax.add(s.there, s.here),
    "concatenate": lambda s: s.lax.concatenate([s.here, s.there], 0),
    "jit": lambda s: s.top.jit(minus)(s.there, s.here),
    "out_shardings": lambda s: s.top.jit(minus, out_shardings=s.sharding)(
        s.here, s.free
    ),
    "in and out": lambda s: s.top.jit(
        first, in_shardings=(s.first_sharding, None), out_shardings=s.sharding
    )(s.free, s.free),
    "results": lambda s: s.top.jit(
        both, out_shardings=(s.first_sharding, s.sharding)
    )(s.free, s.free),
    "lowered": lambda s: s.top.jit(minus, out_shardings=s.sharding).lower(
        s.here, s.free
    ),
    "jit of trees": lambda s: s.top.jit(total)({"u": s.there, "v": s.here}),
    "jit, by name": lambda s: s.top.jit(total_of)(p={"u": s.there, "v": s.here}),
    "jit, identity": lambda s: s.top.jit(both)(s.there, s.here),
    "kept": lambda s: s.top.jit(first, keep_unused=True)(s.here, s.there),
    "lower": lambda s: s.top.jit(minus).lower(s.there, s.here),
}

REFUSED = {
    "put on a word": lambda s: s.top.device_put(s.free, "cpu"),
    "put on a number": lambda s: s.top.device_put(s.free, 0),
    "put a word": lambda s: s.top.device_put("text", s.first),
    "put and share": lambda s: s.top.device_put(
        s.free, s.second, donate=True, may_alias=True
    ),
    "wrong prefix": lambda s: s.top.device_put({"x": s.free}, {"z": s.second}),
    "too many": lambda s: s.top.config.update("jax_num_cpu_devices", 3),
    "no platform": lambda s: s.top.devices("gpu"),
    "no process": lambda s: s.top.local_devices(3),
    "no device": lambda s: s.top.devices()[2],
    "default": lambda s: s.top.config.update("jax_default_device", "cpu:1"),
    "kind of memory": lambda s: s.top.sharding.SingleDeviceSharding(
        s.first, memory_kind="foo"
    ),
    "in_shardings, device": lambda s: s.top.jit(minus, in_shardings=s.second),
    "in_shardings, word": lambda s: s.top.jit(minus, in_shardings="cpu"),
    "in_shardings, tuple": lambda s: s.top.jit(minus, in_shardings=(s.second, None)),
    "out_shardings, device": lambda s: s.top.jit(minus, out_shardings={"x": s.first}),
    "in_shardings, too many": lambda s: s.top.jit(
        minus, in_shardings=(s.sharding,) * 3
    )(s.free, s.free),
    "in_shardings, no tuple": lambda s: s.top.jit(
        minus, in_shardings={"x": s.sharding}
    )(s.free, s.free),
    "in_shardings, static": lambda s: s.top.jit(
        minus, in_shardings=(s.sharding, None), static_argnums=1
    )(s.free, 1),
    "out_shardings, no prefix": lambda s: s.top.jit(
        minus, out_shardings=(s.sharding,)
    )(s.free, s.free),
    "in_shardings, by name": lambda s: s.top.jit(minus, in_shardings=s.sharding)(
        s.free, y=s.free
    ),
    "in_shardings, static by name": lambda s: s.top.jit(
        minus, in_shardings=s.sharding, static_argnames="y"
    )(s.free, y=1),
    "in_shardings and a device": lambda s: s.top.jit(
        minus, in_shardings=s.sharding, device=s.second
    ),
    "out_shardings and a platform": lambda s: s.top.jit(
        minus, out_shardings=s.sharding, backend="cpu"
    ),
    "in_shardings that differ": lambda s: s.top.jit(
        minus, in_shardings=(s.sharding, s.first_sharding)
    )(s.free, s.free),
    "in_shardings and another": lambda s: s.top.jit(
        minus, in_shardings=(s.sharding, None)
    )(s.free, s.here),
    "out_shardings that differ": lambda s: s.top.jit(
        both, out_shardings=(s.sharding, s.first_sharding)
    )(s.free, s.free),
    "jit inside, sharding": lambda s: s.top.jit(
        lambda x: s.top.jit(lambda y: y * 2, out_shardings=s.sharding)(x)
    )(s.here),
    "jit inside a scan": lambda s: s.lax.scan(
        lambda c, x: (s.top.jit(lambda y: y * 2, in_shardings=s.sharding)(c), x),
        s.here[0], s.here,
    ),
    "compiled for a sharding": lambda s: s.top.jit(
        minus, in_shardings=s.sharding
    ).lower(s.free, s.free).compile()(s.here, s.free),
    "struct, device": lambda s: s.top.ShapeDtypeStruct((), "f4", sharding=s.second),
    "struct, axes": lambda s: s.top.ShapeDtypeStruct((), "f4", manual_axis_type={"i"}),
    "struct, changed": lambda s: setattr(
        s.top.ShapeDtypeStruct((), "float32"), "shape", (2,)
    ),
    "structs apart": lambda s: s.top.jit(minus).lower(
        s.top.ShapeDtypeStruct((3,), "float32", sharding=s.sharding), s.here
    ),
    "manual axes": lambda s: s.top.sharding.ManualAxisType(
        varying=frozenset("i"), reduced=frozenset("i")
    ),
    "put sharded": lambda s: s.top.device_put_sharded,
    "put replicated": lambda s: s.top.device_put_replicated,
    "no platform of this name": lambda s: s.top.devices("foo"),
    "creation, committed": lambda s: s.lax.add(
        s.jnp.zeros(3, device=s.first), s.jnp.zeros(3, device=s.second)
    ),
    "device and backend": lambda s: s.top.jit(first, device=s.first, backend="cpu"),
    "jit inside": lambda s: s.top.jit(
        lambda x: s.top.jit(lambda y: y * 2, device=s.second)(x)
    )(s.here),
    "compiled": lambda s: s.top.jit(minus).lower(s.there, s.free).compile()(
        s.there, s.here
    ),
    "compiled for the first": lambda s: s.top.jit(minus)
    .lower(s.free, s.free)
    .compile()(s.there, s.free),
    "deleted": lambda s: s.top.device_put(s.deleted(), s.second),
    "deleted, device": lambda s: s.deleted().device,
    "deleted, devices": lambda s: s.deleted().devices(),
    "deleted, shards": lambda s: s.deleted().addressable_shards,
    "deleted, copied": lambda s: s.deleted().copy_to_host_async(),
    "tracer": lambda s: s.top.jit(lambda x: x.devices())(1.0),
    "tracer, committed": lambda s: s.top.jit(lambda x: x.committed)(1.0),
    "tracer, device": lambda s: s.top.jit(lambda x: x.device)(1.0),
    "grad": lambda s: s.top.grad(lambda x, y: (x * y).sum())(s.there, s.here),
    "jvp": lambda s: s.top.jvp(lambda x: x * x, (s.here,), (s.there,)),
    "vmap": lambda s: s.top.vmap(lambda x, y: x * y)(s.here, s.there),
    "scan": lambda s: s.lax.scan(lambda c, x: (c + x, c), s.here[0], s.there),
    "while": lambda s: s.lax.while_loop(
        lambda p: p[0][0] < 3, lambda p: (p[0] + 1, p[1]), (s.here, s.there)
    ),
    "put, gradient": lambda s: s.top.grad(
        lambda x: (s.top.device_put(x, s.second) * x[0]).sum()
    )(s.free),
    "stack": lambda s: s.jnp.stack([s.here, s.there]),
}


def minus(x, y):
    return x - y


def total(p):
    return p["u"] + p["v"]


def total_of(*, p):
    return total(p)


def both(x, y):
    return x, y


def first(x, y):
    return x + 1


def total_after(f):
    return lambda x: f(x).sum()


def told(x):
    """Return what is compared of a result: for an array, where it is as well."""
    if isinstance(x, (list, tuple)):
        return [told(part) for part in x]
    if isinstance(x, dict):
        return {name: told(part) for name, part in x.items()}
    if hasattr(x, "committed"):
        place = x.device.id, x.committed, str(x.sharding)
        return (*place, x.shape, numbers_of(x))
    return x


def numbers_of(x):
    """Return numbers with so many digits as two libraries have in common."""
    try:
        return np.asarray(x, "float64").round(5).tolist()
    except TypeError:  # typed keys
        return "no numbers"


@pytest.fixture
def sides():
    return Side(minijax), Side(jax)


def program(lax, x):
    y = lax.mul(lax.sin(x), x)
    return lax.reshape(y, (1, x.size)), lax.slice(y, (0,), (1,)), lax.ge(x, y)


VARYING = {
    "elementwise": lambda top, x: top.lax.mul(top.lax.sin(x), x),
    "shapes": lambda top, x: program(top.lax, x),
    "reductions": lambda top, x: (x.sum(), x.max(0), top.lax.cumsum(x)),
    "dot": lambda top, x: top.lax.dot(x, x),
    "concatenate": lambda top, x: top.lax.concatenate([x, x], 0),
    "converted": lambda top, x: top.lax.convert_element_type(x, "int32"),
    "jit": lambda top, x: top.jit(lambda y: top.lax.sin(y))(x),
    "scan": lambda top, x: top.lax.scan(lambda c, y: (c + y, c), x[0], x),
    "vmap": lambda top, x: top.vmap(lambda y: y * y)(x),
    "jvp": lambda top, x: top.jvp(lambda y: y * y, (x,), (x,)),
    "jit of vmap": lambda top, x: top.jit(top.vmap(lambda y: y * y))(x),
    "while": lambda top, x: top.lax.while_loop(
        lambda y: y[0] < y[1], lambda y: y + y, x
    ),
    "nothing": lambda top, x: x,
}


@pytest.mark.parametrize("name", VARYING)
def test_types_of_values_that_vary_are_jax_s(name):
    """What shard_map writes down of a function, and we for an argument of its type."""
    f = VARYING[name]
    axis = jax.sharding.AxisType.Auto
    mesh = jax.make_mesh((2,), ("i",), axis_types=(axis,))
    spec, seen = jax.sharding.PartitionSpec("i"), []

    def body(x):
        results = jax.tree.leaves(f(jax, x))
        seen.append([str(jax.typeof(result)) for result in results])
        return x

    shared = jax.shard_map(body, mesh=mesh, in_specs=spec, out_specs=spec)
    jax.make_jaxpr(shared)(np.ones(6, "float32"))
    axes = minijax.sharding.ManualAxisType(varying={"i"})
    ours = minijax.ShapeDtypeStruct((3,), "float32", manual_axis_type=axes)
    types = minijax.make_jaxpr(lambda x: f(minijax, x))(ours).out_avals
    assert [str(aval) for aval in types] == seen[0]


@pytest.mark.filterwarnings("ignore:backend and device argument:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:Some donated buffers:UserWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_where_jax_has_them(name, sides):
    ours, theirs = (told(PROGRAMS[name](side)) for side in sides)
    assert ours == theirs


def raised(call, side):
    with pytest.raises(Exception) as caught:
        call(side)
    return caught.value


@pytest.mark.parametrize("name", MIXED)
def test_two_devices_are_refused_in_the_words_of_jax(name, sides):
    ours, theirs = (raised(MIXED[name], side) for side in sides)
    assert type(ours) is type(theirs) is ValueError
    assert str(ours).startswith(str(theirs))
    advice = "Put them on one device, for example by", "Name one device, or leave"
    assert any(words in str(ours) for words in advice)


@pytest.mark.filterwarnings("ignore:backend and device argument:DeprecationWarning")
@pytest.mark.parametrize("name", REFUSED)
def test_mistakes_are_of_the_classes_of_jax(name, sides):
    ours, theirs = (raised(REFUSED[name], side) for side in sides)
    assert type(ours).__name__ == type(theirs).__name__, (ours, theirs)
    if str(theirs).startswith("Computation was compiled"):
        assert str(ours) == str(theirs)


def with_an_abstract_mesh(m):
    """What an abstract mesh is good for, and which errors it leads to."""
    mesh = m.make_mesh((2,), ("x",), axis_types=(m.sharding.AxisType.Auto,))
    other = m.make_mesh((2,), ("y",), axis_types=(m.sharding.AxisType.Auto,))
    spec, there = m.P("x"), m.P("y")
    array = m.device_put(np.arange(8.0), m.NamedSharding(mesh, spec))
    wanted = m.NamedSharding(mesh.abstract_mesh, spec)

    def mapped(x, mesh, spec=spec):
        how = {"mesh": mesh, "in_specs": spec, "out_specs": spec}
        return m.shard_map(lambda v: 2 * v, **how)(x)

    found = [mapped(array, mesh.abstract_mesh).tolist()]
    for call in (
        lambda: mapped(m.numpy.arange(8.0), mesh.abstract_mesh),
        lambda: mapped(array, other.abstract_mesh, there),
        lambda: m.lax.with_sharding_constraint(np.arange(8), wanted),
        lambda: m.lax.with_sharding_constraint(m.numpy.arange(8), wanted),
        lambda: m.lax.with_sharding_constraint(
            array, m.NamedSharding(other.abstract_mesh, there)
        ),
    ):
        with pytest.raises((TypeError, ValueError)) as refused:
            call()
        found.append((refused.type.__name__, str(refused.value)[:40]))
    return found


def test_abstract_meshes():
    assert with_an_abstract_mesh(minijax) == with_an_abstract_mesh(jax)
