"""Why a function is traced again, in one sentence.

Reference: ``jax.explain_cache_misses``.
"""

# Made from chapters/12_jit_rest.md by `make chapter`;
# edit the chapter, not this file.

from itertools import zip_longest
from weakref import WeakKeyDictionary

from minijax.arrays.settings import config
from minijax.forgetting.remembering import traced_switches
from minijax.jitting.trace_cache import note_miss
from minijax.pytrees.call_names import argument_names
from minijax.pytrees.differences import differences

_LOGGER = "minijax.jitting.trace_cache"
_traced = WeakKeyDictionary()  # from code to the names of functions that it made


def log_reason(call, key, once):
    """Log why the function of a call has to be traced, if the user wants to know.

    Raises:
      RuntimeError: if the switch ``jax_no_tracing`` is on.
    """
    if config.jax_no_tracing:
        raise RuntimeError(
            f"re-tracing function {call.fun_name} for `jit`, but 'no_tracing' is set"
        )
    if config.jax_explain_cache_misses:
        _log(reason_of(call, key, once))
    if config.jax_log_compiles:
        types = ", ".join(map(str, call.avals))
        _log(f"Compiling {call.fun_name} with global shapes and types [{types}].")


def _log(text):
    import logging  # not earlier: a fork takes logging's lock before ours

    logging.getLogger(_LOGGER).warning(text)


note_miss.value = log_reason


def reason_of(call, key, once):
    """Return, in one sentence, why the function of a call has to be traced.

    Args:
      call: a `FlatCall`.
      key: the `Key` of the program that is wanted.
      once: the `Once` with the programs that there are.
    """
    known = [old for old in [*once.values] if old.hoist == key.hoist]
    if not known:
        return f"{call.fun_name} is traced because {_first_time(call, once)}."
    first, *rest = changes(call, key, nearest(key, known))
    others = f"{len(rest)} other things" if len(rest) > 1 else "another thing"
    more = f", and so did {others}" if rest else ""
    return f"{call.fun_name} is traced again because {first}{more}."


def nearest(key, known):
    """Return the one of the `known` keys that is most like `key`, the latest first."""

    def distance(old):
        return _tree_distance(key.tree, old.tree), _distance(key, old)

    return min(reversed(known), key=distance)


def _tree_distance(*trees):
    """Return how many arguments of two calls differ in structure."""
    calls = [tree.children() for tree in trees]
    pairs = [*zip_longest(*(args.children() for args, _ in calls))]
    now, before = (dict(zip(named.aux, named.children())) for _, named in calls)
    pairs += [(now.get(name), before.get(name)) for name in {**before, **now}]
    return sum(a != b for a, b in pairs)


def _distance(key, old):
    """Return in how many parts two keys differ."""
    parts = [*zip(key.switches, old.switches), (key.axes, old.axes)]
    now, before = dict(key.statics), dict(old.statics)
    parts += [(now.get(name), before.get(name)) for name in {**before, **now}]
    for a, b in zip(key.avals, old.avals):
        parts += [(a.shape, b.shape), (a.dtype, b.dtype), (a.weak_type, b.weak_type)]
    return sum(a != b for a, b in parts)


def changes(call, key, old):
    """Return what is different between a call's key and another one, as clauses."""
    return [
        *_pairs("the switch ", traced_switches, key.switches, old.switches),
        *_axis_changes(key.axes, old.axes),
        *_static_changes(dict(key.statics), dict(old.statics)),
        *(_tree_changes(call, key, old) or _aval_changes(call, key, old)),
    ]


def _changed(what, before, now):
    return f"{what} changed from {before} to {now}"


def _aval_changes(call, key, old):
    triples = zip(call.names(), old.avals, key.avals)
    return [_aval_change(name, a, b) for name, a, b in triples if a != b]


def _aval_change(name, before, now):
    kinds = {
        "shape": before.shape != now.shape,
        "dtype": before.dtype != now.dtype,
        "weak type": before.weak_type != now.weak_type,
    }
    what = " and ".join(kind for kind in kinds if kinds[kind])
    return _changed(f"the {what} of its argument {name}", _aval(before), _aval(now))


def _aval(aval):
    return "weak " * aval.weak_type + str(aval.update(weak_type=False))


def _pairs(what, names, now, before):
    triples = zip(names, before, now)
    return [_changed(f"{what}{name}", a, b) for name, a, b in triples if a != b]


def _axis_changes(now, before):
    if now == before:
        return []
    return [_changed("the named axes around the call", _axes(before), _axes(now))]


def _axes(axes):
    return " and ".join(f"{axis.name!r} of size {axis.size}" for axis in axes) or "none"


def _static_changes(now, before):
    names = {**before, **now}
    new, old = ([d.get(name, "its default") for name in names] for d in (now, before))
    return _pairs("its static argument ", names, new, old)


def _tree_changes(call, key, old):
    if key.tree == old.tree:
        return []
    (args, kwargs), (old_args, old_kwargs) = key.tree.children(), old.tree.children()
    if len(args.children()) != len(old_args.children()):
        counts = len(old_args.children()), len(args.children())
        return [_changed("the number of its positional arguments", *counts)]
    if kwargs.aux != old_kwargs.aux:
        names = _listed(old_kwargs.aux), _listed(kwargs.aux)
        return [_changed("what it is given by keyword", *names)]
    return list(_places(call, old_args.children() + old_kwargs.children()))


def _listed(names):
    return " and ".join(map(str, names)) or "nothing"


def _places(call, trees):
    """Yield a clause for each place where the arguments depart from `trees`."""
    values = [call.args[i] for i in call.argnums]
    values += [call.kwargs[name] for name in sorted(call.kwargs)]
    leaves = [0] * len(call.args), dict.fromkeys(call.kwargs, 0)
    names = argument_names(call.fun, *leaves, call.argnums)
    for name, value, tree in zip(names, values, trees):
        for line in differences(tree, value, exact=True, name=name):
            place, _, what = line.removeprefix("at ").partition(": expected ")
            before, _, now = what.partition(", got ")
            yield _changed(f"the structure of its argument {place}", before, now)


def _first_time(call, once):
    function = getattr(call.fun, "func", call.fun)  # of a functools.partial
    code = getattr(function, "__code__", None)
    names = set() if code is None else _traced.setdefault(code, set())
    seen = call.fun_name in names
    names.add(call.fun_name)
    if once.cleared:
        return "the caches were cleared after its last call"
    if once.refused:
        return (
            "it uses values of a transformation around it, and a program with such "
            "values in it is right for one call alone"
        )
    if seen:
        return (
            "this function object is new: the same lines have made another one before, "
            "and each object has programs of its own"
        )
    return "it is called for the first time"
