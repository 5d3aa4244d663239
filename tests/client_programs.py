"""What libraries do with the namespaces for extensions, in either package.

Each function takes the package and a function that imports its modules, and returns
what may be compared.
"""

import numpy as np
import pytest


def _area(x, y, z=1):
    return {"sum": x["u"] + y * z}


def _parts(module):
    lu, api_util = module("extend.linear_util"), module("api_util")
    args = {"u": 1}, 2
    info = api_util.debug_info("me", _area, args, {"z": 3}, sourceinfo="area")
    tree = module("tree_util").tree_structure(args)
    return lu, api_util, info, tree


def flattened(package, module):
    lu, api_util, info, tree = _parts(module)
    wrapped = lu.wrap_init(_area, {"z": 4}, debug_info=info)
    flat, out_tree = api_util.flatten_fun_nokwargs(wrapped, tree)
    result = flat.call_wrapped(1, 2)
    named = module("tree_util").tree_structure((({"u": 0}, 0), {"z": 0}))
    other, tree_of_other = api_util.flatten_fun(
        lu.wrap_init(_area, debug_info=info), named
    )
    results = result, other.call_wrapped(1, 2, 5)
    return results, str(out_tree()), str(tree_of_other()), info.arg_names, info[:2]


def transformed(package, module):
    lu, api_util, info, tree = _parts(module)

    @lu.transformation
    def scaled(factor, *args):
        outs = yield [factor * x for x in args], {}
        yield [10 * out for out in outs]

    @lu.transformation_with_aux
    def counted(*args):
        outs = yield args, {}
        yield outs, len(outs)

    @lu.transformation2
    def shifted(f, by, *args):
        return f(*[x + by for x in args])

    wrapped = lu.wrap_init(_area, debug_info=info)
    flat, out_tree = api_util.flatten_fun_nokwargs(wrapped, tree)
    around, count = counted(scaled(shifted(flat, 100), 3))
    assert around != flat and around == around and len({around, flat}) == 2
    return around.call_wrapped(1, 2), count(), str(out_tree()), around.__name__


def stored(package, module):
    lu, api_util, info, tree = _parts(module)

    def flat():
        return api_util.flatten_fun_nokwargs(wrapped, tree)

    wrapped = lu.wrap_init(_area, debug_info=info)
    first, one = flat()
    _, other = flat()
    with pytest.raises(lu.StoreException):
        one()
    with pytest.raises(lu.StoreException, match="neither"):
        lu.merge_linear_aux(one, other)
    first.call_wrapped(1, 2)
    with pytest.raises(lu.StoreException, match="occupied"):
        first.call_wrapped(1, 2)
    merged = [lu.merge_linear_aux(*pair) for pair in ((one, other), (other, one))]
    with pytest.raises(lu.StoreException, match="both"):
        lu.merge_linear_aux(one, one)
    return [(which, str(tree)) for which, tree in merged]


def remembered(package, module):
    lu, api_util, info, tree = _parts(module)
    calls = []

    @lu.cache
    def run(fun, x):
        calls.append(x)
        return fun.call_wrapped(x, x)

    found = []
    wrapped = lu.wrap_init(_area, debug_info=info)
    for x in (2, 2, 3, 2):
        flat, out_tree = api_util.flatten_fun_nokwargs(wrapped, tree)
        found.append((run(flat, x), str(out_tree())))
    run.evict_function(_area)
    run(api_util.flatten_fun_nokwargs(wrapped, tree)[0], 2)
    run.cache_clear()
    run(api_util.flatten_fun_nokwargs(wrapped, tree)[0], 2)
    return found, calls


def positions(package, module):
    lu, api_util, info, _ = _parts(module)
    wrapped = lu.wrap_init(lambda *args: args, debug_info=info)
    fixed, rest = api_util.argnums_partial(wrapped, (0, -1), [1, 2, 3])
    equal = api_util.argnums_partial(wrapped, (0, 2), [5, 2, 7])[0]
    assert fixed == equal != api_util.argnums_partial(wrapped, (0, 2), [5, 2.0, 7])[0]
    loose, _ = api_util.argnums_partial(wrapped, 0, [1, [2]], False)
    with pytest.raises(ValueError, match="Non-hashable"):
        api_util.argnums_partial(wrapped, 0, [1, [2]])
    tree = module("tree_util").tree_structure
    whole = tree((({"a": 1, "b": 2}, 3), {"k": [1, 2], "j": 4}))
    with pytest.raises(ValueError, match="cannot"):
        api_util.rebase_donate_argnums((1, 2), (2,))
    with pytest.raises(ValueError):
        api_util.flatten_axes("in_axes", tree(({"a": 1}, 3)), (0, None, 1))
    with pytest.raises(ValueError):
        api_util.safe_map(lambda a, b: a, [1], [1, 2])
    return (
        (fixed.call_wrapped(10, 30), rest, loose.call_wrapped(4)),
        api_util.rebase_donate_argnums((3, 4), (0, 1)),
        api_util.rebase_donate_argnums((5, 2, 2), (3,)),
        api_util.donation_vector((0,), ("k",), whole),
        api_util.donation_vector((1,), (), tree((1, [2, 3], 4)), False),
        api_util.flatten_axes("in_axes", tree(({"a": 1, "b": 2}, 3)), (0, None)),
        api_util.safe_map(lambda a, b: a + b, [1, 2], (3, 4)),
        api_util.shaped_abstractify(np.ones((2, 3), "float32")).shape,
    )


def generator(package, module):
    random, names = module("random"), module("extend.random")
    impl, array = names.threefry_prng_impl, package.numpy.asarray
    key = array(np.uint32([1, 2]))
    seed, number = package.numpy.int32(5), package.numpy.uint32(7)
    found = [impl.seed(seed), impl.fold_in(key, number), impl.split(key, (2, 3))]
    found += [impl.random_bits(key, width, (3,)) for width in (8, 16, 32)]
    made = names.random_seed(3, impl=impl), names.seed_with_impl(impl, 2**40)
    found += [random.key_data(each) for each in made]
    for size in (0, 1, 2, 3, 8, 9):
        words = array(np.arange(size, dtype="uint32"))
        found.append(names.threefry_2x32(key, words))
    words = array(np.ones((3, 5), "uint32"))
    found.append(package.jit(names.threefry_2x32)(key, words))
    with pytest.raises(TypeError):
        names.threefry_2x32(np.int32([1, 2]), array(np.arange(2)))
    return [np.asarray(x).tolist() for x in found], impl.name, impl.tag, impl.key_shape


def platforms(package, module):
    backend = module("extend.backend")
    cpu = backend.get_backend("cpu")
    with pytest.raises(RuntimeError):
        backend.get_backend("abacus")
    assert backend.get_backend() is cpu is backend.backends()["cpu"]
    counts = cpu.device_count(), cpu.local_device_count(), cpu.process_index()
    kinds = [device.platform for device in (*cpu.devices(), *cpu.local_devices())]
    return cpu.platform, counts, kinds, backend.get_default_device().platform


PROGRAMS = {
    function.__name__: function
    for function in (
        flattened, transformed, stored, remembered, positions, generator, platforms
    )
}  # fmt: skip
