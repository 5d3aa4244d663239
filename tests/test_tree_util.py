"""Trees: laws on random ones, and the corners on chosen ones."""

import collections
import copy
import dataclasses
import functools
import operator
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax.numpy as jnp
from minijax import block_until_ready, jit, tree, tree_util, vmap
from minijax.flatten_util import ravel_pytree
from minijax.pytrees import tree_operations
from minijax.pytrees import tree_util as treedefs
from minijax.pytrees.tree_operations import broadcast_prefix
from minijax.tree_util import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    Partial,
    SequenceKey,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_leaves,
    tree_map,
    tree_structure,
    tree_unflatten,
)

Point = collections.namedtuple("Point", "x y")


@tree_util.register_pytree_node_class
class Pair:
    """A container with a tag, without names for its children."""

    def __init__(self, first, second, tag="tag"):
        self.first, self.second, self.tag = first, second, tag

    def __eq__(self, other):
        return isinstance(other, Pair) and vars(self) == vars(other)

    __hash__ = None

    def tree_flatten(self):
        return (self.first, self.second), self.tag

    @classmethod
    def tree_unflatten(cls, tag, children):
        return cls(*children, tag)


@tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    """Two fields of data and one that belongs to the structure."""

    w: object
    b: object
    name: str = dataclasses.field(default="layer", metadata={"static": True})


@tree_util.register_pytree_with_keys_class
class Keyed:
    """A container that names its one child."""

    def __init__(self, inner):
        self.inner = inner

    def tree_flatten_with_keys(self):
        return [(GetAttrKey("inner"), self.inner)], None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)


def containers(children):
    names = st.text("abcd", min_size=1, max_size=2)
    mappings = st.dictionaries(names, children, max_size=3)
    pairs = st.tuples(children, children)
    return st.one_of(
        st.lists(children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        mappings,
        mappings.map(collections.OrderedDict),
        mappings.map(lambda d: collections.defaultdict(list, d)),
        pairs.map(lambda p: Point(*p)),
        pairs.map(lambda p: Pair(*p)),
        pairs.map(lambda p: Layer(*p)),
    )


leaves = st.integers(-9, 9) | st.floats(-1, 1) | st.text("xyz", max_size=2)
trees = st.recursive(leaves | st.none(), containers, max_leaves=12)


def leads_to(path, leaf, subtree):
    """Follow a key path by hand, and say whether it ends at the leaf."""
    for key in path:
        match key:
            case DictKey(name):
                subtree = subtree[name]
            case SequenceKey(i):
                subtree = subtree[i]
            case GetAttrKey(name):
                subtree = getattr(subtree, name)
            case FlattenedIndexKey(i):
                subtree = subtree.tree_flatten()[0][i]
    return subtree is leaf


@given(trees)
def test_flatten_and_back(tree):
    flat, treedef = tree_flatten(tree)
    again = tree_unflatten(treedef, flat)
    assert again == tree and type(again) is type(tree)
    assert treedef.num_leaves == len(flat)
    assert tree_flatten(again) == (flat, treedef)


@given(trees)
def test_map_of_identity_and_of_a_composition(tree):
    double, wrap = lambda x: x * 2, lambda x: [str(x)]
    assert tree_map(lambda x: x, tree) == tree
    both = tree_map(lambda x: wrap(double(x)), tree)
    assert tree_map(wrap, tree_map(double, tree)) == both


@given(trees)
def test_leaves_of_a_map_are_the_map_of_the_leaves(tree):
    assert tree_leaves(tree_map(repr, tree)) == list(map(repr, tree_leaves(tree)))
    assert tree_structure(tree_map(repr, tree)) == tree_structure(tree)


@given(trees)
def test_paths_lead_to_the_leaves(tree):
    pairs, treedef = tree_flatten_with_path(tree)
    assert [leaf for _, leaf in pairs] == tree_leaves(tree)
    assert treedef == tree_structure(tree)
    assert all(leads_to(path, leaf, tree) for path, leaf in pairs)
    assert len({keystr(path) for path, _ in pairs}) == len(pairs)


@given(trees, trees)
def test_structures_are_equal_when_their_texts_are(one, two):
    one, two = tree_structure(one), tree_structure(two)
    assert (one == two) == (str(one) == str(two))
    assert one != two or hash(one) == hash(two)


@given(trees)
def test_structure_of_structures(tree):
    treedef = tree_structure(tree)
    children = treedef.children()
    assert treedef.num_nodes == 1 + sum(child.num_nodes for child in children)
    assert tree_util.treedef_children(treedef) == children
    assert tree_util.treedef_is_leaf(treedef) == (not children)
    pair = tree_util.treedef_tuple([treedef, treedef])
    assert pair == tree_structure((tree, tree))


@given(trees, trees)
def test_a_composition_is_a_tree_of_trees(outer, inner):
    treedef = tree_structure(outer).compose(tree_structure(inner))
    assert treedef == tree_structure(tree_map(lambda _: inner, outer))
    assert tree_structure(outer).flatten_up_to(tree_map(lambda _: inner, outer)) == [
        inner
    ] * len(tree_leaves(outer))


@given(trees, st.integers(1, 3))
def test_transposing_twice_changes_nothing(tree, width):
    outer, inner = tree_structure(tree), tree_structure([0] * width)
    nested = tree_map(lambda leaf: [f"{leaf} {i}" for i in range(width)], tree)
    turned = tree_util.tree_transpose(outer, inner, nested)
    assert tree_util.tree_transpose(inner, outer, turned) == nested


@given(trees)
def test_broadcast_gives_each_leaf_to_all_below(tree):
    larger = tree_map(lambda _: {"a": 1, "b": (2, None)}, tree)
    spread = tree_util.tree_broadcast(tree, larger)
    assert spread == tree_map(lambda x: {"a": x, "b": (x, None)}, tree)
    assert broadcast_prefix(tree, larger) == tree_leaves(spread)


TEXTS = [
    (1, "*"),
    (None, "None"),
    ((), "()"),
    ((1,), "(*,)"),
    ([], "[]"),
    ([1, (2,)], "[*, (*,)]"),
    ({}, "{}"),
    ({"b": 1, "a": (2, 3)}, "{'a': (*, *), 'b': *}"),
    ({2: 1, 1: None}, "{1: None, 2: *}"),
    (Point(1, [2]), "CustomNode(namedtuple[Point], [*, [*]])"),
    (Pair(1, 2, "t"), "CustomNode(Pair[t], [*, *])"),
    (Layer(1, None), "CustomNode(Layer[('layer',)], [*, None])"),
    (
        collections.OrderedDict(b=1, a=2),
        "CustomNode(OrderedDict[('b', 'a')], [*, *])",
    ),
    (
        collections.defaultdict(int, a=1),
        "CustomNode(defaultdict[(<class 'int'>, ('a',))], [*])",
    ),
]


@pytest.mark.parametrize(("tree", "text"), TEXTS)
def test_text_of_a_structure(tree, text):
    assert repr(tree_structure(tree)) == str(tree_structure(tree))
    assert repr(tree_structure(tree)) == f"PyTreeDef({text})"


def test_other_types_are_leaves():
    class Words(list):
        """A list, but not exactly."""

    for leaf in (Words("ab"), {1, 2}, collections.deque([1]), np.ones(2), "text", len):
        assert tree_leaves(leaf) == [leaf] or tree_leaves(leaf)[0] is leaf


def test_keys_are_sorted_unless_they_keep_an_order():
    assert tree_leaves({"b": 1, "a": 2}) == [2, 1]
    assert list(tree_map(str, {"b": 1, "a": 2})) == ["a", "b"]
    ordered = collections.OrderedDict(b=1, a=2)
    assert tree_leaves(ordered) == [1, 2]
    assert tree_structure(ordered) != tree_structure(collections.OrderedDict(a=2, b=1))


def test_a_default_dictionary_keeps_its_factory():
    mapped = tree_map(lambda x: -x, collections.defaultdict(list, b=1))
    assert mapped["missing"] == [] and mapped["b"] == -1


def test_is_leaf():
    stop = lambda x: isinstance(x, tuple)  # noqa: E731
    flat, treedef = tree_flatten([(1, 2), {"a": (3,)}, None], stop)
    assert flat == [(1, 2), (3,)]
    assert str(treedef) == "PyTreeDef([*, {'a': *}, None])"
    assert tree_leaves([None, 1], is_leaf=lambda x: x is None) == [None, 1]
    assert tree_map(len, [(1, 2), ()], is_leaf=stop) == [2, 0]


def test_leaves_are_found_without_a_structure(monkeypatch):
    """Whoever waits for the results of each call waits for no structure."""
    values = {"b": [1, (2, None)], "a": Pair(3, Point(4, 5))}
    expected = tree_flatten(values)[0], tree_flatten(values, is_point)[0]
    monkeypatch.setattr(treedefs, "PyTreeDef", None)
    assert (tree_leaves(values), tree_leaves(values, is_point)) == expected
    assert expected == ([3, 4, 5, 1, 2], [3, Point(4, 5), 1, 2])


def test_waiting_for_one_array_looks_at_no_tree(monkeypatch):
    x = jnp.ones(3)
    waited = block_until_ready({"a": (x, 2), "b": None})
    assert waited["a"][0] is x and waited["a"][1] == 2
    monkeypatch.setattr(tree_operations, "transfer", None)
    assert block_until_ready(x) is x


def is_point(value):
    """Whether to stop at a value."""
    return isinstance(value, Point)


def test_is_leaf_may_look_at_the_path():
    tree = {"a": (1, 2), "b": (3, 4)}
    stop = lambda path, _: keystr(path) == "['b']"  # noqa: E731
    flat = tree_util.tree_leaves_with_path(tree, stop, is_leaf_takes_path=True)
    assert [leaf for _, leaf in flat] == [1, 2, (3, 4)]
    mapped = tree_util.tree_map_with_path(
        lambda path, x: keystr(path), tree, is_leaf=stop, is_leaf_takes_path=True
    )
    assert mapped == {"a": ("['a'][0]", "['a'][1]"), "b": "['b']"}


KEYS = (DictKey("a"), SequenceKey(1), GetAttrKey("z"), FlattenedIndexKey(3))


def test_text_of_keys():
    assert keystr(KEYS) == "['a'][1].z[<flat index 3>]"
    assert keystr(KEYS, simple=True, separator="/") == "a/1/z/3"
    assert keystr((1, "a")) == "1a"
    assert repr(KEYS[0]) == "DictKey(key='a')" and repr(KEYS[1]) == "SequenceKey(idx=1)"
    assert len(set(KEYS)) == 4 and DictKey("a") == KEYS[0]


def test_map_with_path_and_other_trees():
    one, two = {"a": 1, "b": [2]}, {"a": 3, "b": [(4, 5)]}
    mapped = tree_util.tree_map_with_path(lambda p, *xs: (keystr(p), *xs), one, two)
    assert mapped == {"a": ("['a']", 1, 3), "b": [("['b'][0]", 2, (4, 5))]}


def test_reductions():
    tree = [1, {"a": 2, "b": (3, None)}]
    assert tree_util.tree_reduce(operator.add, tree) == 6
    assert tree_util.tree_reduce(operator.add, tree, 10) == 16
    assert tree_util.tree_reduce(operator.add, [], None) is None
    assert tree_util.tree_all(tree) and not tree_util.tree_all([tree, 0])
    assert tree_util.all_leaves([1, "a"]) and not tree_util.all_leaves([1, (2,)])
    assert not tree_util.all_leaves([None])


@given(st.lists(st.text("ab"), min_size=1))
def test_associative_reduction(words):
    assert tree_util.tree_reduce_associative(operator.add, words) == "".join(words)


def test_associative_reduction_of_nothing():
    assert tree_util.tree_reduce_associative(operator.add, [], identity=0) == 0
    with pytest.raises(TypeError, match="initializer"):
        tree_util.tree_reduce_associative(operator.add, [])


def test_registering_with_keys():
    assert [keystr(path) for path, _ in tree_flatten_with_path(Keyed([1]))[0]] == [
        ".inner[0]"
    ]
    assert tree_map(str, Keyed((1, 2))).inner == ("1", "2")


def test_dataclass_fields():
    layer = tree_map(lambda x: x + 1, Layer(1, 2, "first"))
    assert layer == Layer(2, 3, "first")
    assert tree_structure(Layer(1, 2, "x")) != tree_structure(Layer(1, 2, "y"))

    class Plain:
        def __init__(self, a, b):
            self.a, self.b = a, b

    tree_util.register_dataclass(Plain, ["a"], ["b"])
    assert tree_leaves(Plain(1, 2)) == [1]

    @functools.partial(
        tree_util.register_dataclass, data_fields=["a"], meta_fields=[], drop_fields="b"
    )
    @dataclasses.dataclass
    class Dropped:
        a: int
        b: int = 7

    assert tree_map(str, Dropped(1, 2)) == Dropped("1", 7)


def test_static_instances_have_no_leaves():
    @tree_util.register_static
    class Tag(str):
        """Text that is structure."""

    assert tree_leaves([Tag("a"), 1]) == [1]
    assert tree_structure(Tag("a")) == tree_structure(Tag("a"))
    assert tree_structure(Tag("a")) != tree_structure(Tag("b"))


def test_partial_is_a_tree_of_its_arguments():
    power = Partial(pow, 2, mod=5)
    assert tree_leaves(power) == [2, 5]
    assert tree_map(lambda x: x + 1, power)(2) == pow(3, 2, 6)
    nested = Partial(Partial(max, 1), 2)
    assert tree_leaves(nested) == [2] and nested(3) == 3
    short = repr(nested).replace(f"{Partial.__module__}.", "")  # long in Python 3.13
    assert short == "Partial(Partial(<built-in function max>, 1), 2)"
    assert pickle.loads(pickle.dumps(Partial(max, 2)))(3) == 3


def test_short_names():
    for name in {*dir(tree)} - {"static"}:
        code = getattr(tree_util, f"tree_{name}").__code__
        assert getattr(tree, name).__code__ is code
        assert getattr(tree, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing"):
        tree.nothing  # noqa: B018


def register_twice():
    tree_util.register_pytree_node(Pair, lambda x: x, lambda x: x)


def register_the_field(*args, **kwargs):
    @dataclasses.dataclass
    class Fresh:
        a: int
        b: int = 2

    return tree_util.register_dataclass(Fresh, *args, **kwargs)


PAIR = tree_structure([1, 2])
ADD = operator.add
ERRORS = [
    (lambda: tree_leaves({1: 2, "a": 3}), ValueError, r"\[1, 'a'\].*OrderedDict"),
    (lambda: tree_unflatten(PAIR, [1]), ValueError, "few.*expected 2, got 1"),
    (lambda: tree_unflatten(PAIR, [1, 2, 3]), ValueError, "many.*expected 2, got 3"),
    (
        lambda: tree_map(ADD, (1, 2), (1, 2, 3)),
        ValueError,
        r"Tuple arity mismatch: 3 != 2; tuple: \(1, 2, 3\)\.",
    ),
    (lambda: tree_map(ADD, [1], (1,)), ValueError, r"Expected list, got \(1,\)\."),
    (lambda: tree_map(ADD, [1], iter([1])), ValueError, "list_iterator"),
    (
        lambda: tree_map(ADD, {"a": 1}, {"b": 1}),
        ValueError,
        r"Dict key mismatch; expected keys: \['a'\]; dict: \{'b'",
    ),
    (
        lambda: tree_map(ADD, {"a": (1,)}, {"a": 2}),
        ValueError,
        r"at \['a'\]: Expected tuple, got 2\.",
    ),
    (lambda: tree_map(ADD, {"a": None}, {"a": 2}), ValueError, r"at \['a'\].*None"),
    (
        lambda: tree_map(ADD, Point(1, 2), (1, 2)),
        ValueError,
        r"Expected named tuple, got \(1, 2\)\.",
    ),
    (lambda: tree_map(ADD, Layer(1, 2), Layer(1, 2, "n")), ValueError, "'layer'.*'n'"),
    (lambda: tree_map(ADD, Layer([1], 2), Layer(1, 2)), ValueError, r"at \.w: "),
    (
        lambda: tree_util.tree_map_with_path(ADD, {"a": 1}, {}),
        ValueError,
        "tree_map_with_path",
    ),
    (
        lambda: tree_util.tree_broadcast({"a": 1, "b": 2}, {"a": 1}),
        ValueError,
        r"keys: \['a', 'b'\]; dict: \{'a': 1\}",
    ),
    (lambda: PAIR.flatten_up_to((1, 2)), ValueError, r"begin with PyTreeDef\(\[\*, "),
    (register_twice, ValueError, "Pair.*already"),
    (
        lambda: tree_util.register_pytree_node(dict, None, None),
        ValueError,
        "dict.*already",
    ),
    (lambda: tree_util.tree_reduce(ADD, [None]), TypeError, "initializer"),
    (
        lambda: tree_util.tree_transpose(PAIR, tree_structure((0, 0)), [(1, 2)]),
        TypeError,
        r"Mismatch.*\[\(\*, \*\), \(\*, \*\)\]\), 4, but got 2",
    ),
    (
        lambda: tree_util.register_dataclass(int),
        TypeError,
        "meta_fields are required when nodetype is not a dataclass",
    ),
    (
        lambda: vmap(lambda x: x, in_axes=([0, {}],))([1, [2]]),
        ValueError,
        r"in_axes specification must be a tree prefix of the corresponding value;"
        r".*Mismatch details \(1 found\).*different types.*in_axes\[0\]\[1\]",
    ),
    (lambda: register_the_field(["a"]), TypeError, "both"),
    (lambda: register_the_field(["a"], []), ValueError, r"Missing fields: {'b'}"),
    (lambda: register_the_field("abz", ""), ValueError, r"Unexpected fields: {'z'}"),
    (lambda: register_the_field("ab", "b"), ValueError, r"Overlapping fields: {'b'}"),
    (lambda: ravel_pytree(["a"]), TypeError, "'a'"),
    (lambda: ravel_pytree([1, 2.0])[1](np.ones(3)), ValueError, r"2 numbers.*\(3,\)"),
    (lambda: ravel_pytree([1, 2.0])[1](np.ones(2, int)), TypeError, "float32.*int32"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors_say_where_and_what(call, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        call()


def test_all_differences_are_shown():
    with pytest.raises(ValueError) as info:
        tree_map(ADD, {"a": (1, 2), "b": [1]}, {"a": (1,), "b": (1,)})
    assert "at ['a']" in str(info.value) and "at ['b']" in str(info.value)


VECTORS = [
    ({"a": np.ones((2, 2), np.float32), "b": [1, 2.0]}, "float32", 6),
    ([1, 2], "int32", 2),
    ([np.float16(1), np.ones(3, np.complex64)], "complex64", 4),
    ([True, False], "bool", 2),
    ([np.zeros((0, 3), np.float32), 1.5], "float32", 1),
]


@pytest.mark.parametrize(("tree", "dtype", "size"), VECTORS)
def test_ravel_and_back(tree, dtype, size):
    vector, unravel = ravel_pytree(tree)
    assert vector.shape == (size,) and vector.dtype == dtype
    again = unravel(vector)
    assert tree_structure(again) == tree_structure(tree)
    for old, new in zip(tree_leaves(tree), tree_leaves(again)):
        assert new.shape == np.shape(old)
        np.testing.assert_array_equal(np.asarray(new), old)


def test_ravel_of_nothing():
    vector, unravel = ravel_pytree({"a": None})
    assert vector.shape == (0,) and vector.dtype == np.float32
    assert unravel(vector) == {"a": None}


def test_structures_have_a_hash_even_if_their_data_have_none():
    class Scaled:
        def __init__(self, x, options):
            self.x, self.options = x, options

    tree_util.register_pytree_node(
        Scaled, lambda s: ((s.x,), s.options), lambda aux, xs: Scaled(xs[0], aux)
    )
    one, same, other = (
        tree_util.tree_structure(Scaled(1.0, {"by": by})) for by in (2, 2, 3)
    )
    assert one == same and hash(one) == hash(same) and one != other

    f = jit(lambda tree: tree["a"].x * 2)
    assert f({"a": Scaled(1.0, np.ones(3))}) == 2
    with pytest.raises(ValueError, match=r"metadata of two Scaled.*array\(\[1.*child"):
        f({"a": Scaled(1.0, np.ones(3))})


STRUCTURES = {
    "built in": [1, (2, {"a": 3}), None, ()],
    "mappings": [collections.OrderedDict(b=1), collections.defaultdict(int, a=1)],
    "named": Point(1, [2]),
    "registered": Pair(1, 2),
    "dataclass": Layer(1, 2),
    "partial": Partial(pow, 2, mod=5),
}


@pytest.mark.parametrize("tree", STRUCTURES.values(), ids=STRUCTURES)
def test_structures_travel(tree):
    leaves, structure = tree_flatten(tree)
    texts = [pickle.dumps(structure, n) for n in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    copies = copy.copy(structure), copy.deepcopy(structure), *map(pickle.loads, texts)
    for other in copies:
        assert other == structure and hash(other) == hash(structure)
        assert tree_structure(other.unflatten(leaves)) == structure


def test_structure_of_a_class_that_is_not_registered(monkeypatch):
    text = pickle.dumps(tree_structure(Pair(1, 2)))
    monkeypatch.delitem(treedefs.node_kinds, Pair)
    with pytest.raises(ValueError, match=r"Pair.* not registered"):
        pickle.loads(text)


def test_hashes_of_keys():
    keys = [DictKey(1), SequenceKey(1), FlattenedIndexKey(1), GetAttrKey("a")]
    assert [hash(key) for key in keys] == [1, 2, 43, hash("a")]  # as in JAX
    assert all((a == b) == (a is b) for a in keys for b in keys)


def test_structure_of_partials_of_partials():
    first = functools.partial(max, 1)
    one, other = (tree_structure(Partial(first, 2)) for _ in range(2))
    assert one == other and hash(one) == hash(other)
    assert one != tree_structure(Partial(functools.partial(max, 1), 2))


@pytest.mark.parametrize("second", [np.ones((2, 2), np.float32), np.ones(3, int)])
def test_ways_back_of_equal_structures_are_equal(second):
    traces = []

    def double(vector, unravel):
        traces.append(unravel)
        return unravel(2 * vector)

    call = jit(double, static_argnums=1)
    for _ in range(3):
        vector, unravel = ravel_pytree({"a": np.ones(2, np.float32), "b": second})
        call(vector, unravel)
        call(vector, pickle.loads(pickle.dumps(unravel)))
    assert len(traces) == 1
    assert unravel != ravel_pytree([np.ones(2), second])[1]


RAVELED = {  # dtypes of leaves meet as dtypes; weak ones are no exception
    "one weak type": ([1.0, 2.0], "float32", True),
    "weak and strong": ([1.0, np.ones(2, np.float32)], "float32", False),
    "two weak types": ([1, 2.5], "float32", False),
    "half and a number": ([np.float16(1), 2.5], "float32", False),
    "byte and a number": ([np.int8(1), 3], "int32", False),
}


@pytest.mark.parametrize(("tree", "dtype", "weak"), RAVELED.values(), ids=RAVELED)
def test_dtype_of_a_raveled_tree(tree, dtype, weak):
    vector = ravel_pytree(tree)[0]
    assert (vector.dtype, vector.weak_type) == (dtype, weak)
