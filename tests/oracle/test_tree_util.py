"""Trees against `jax.tree_util`: leaves, structures, texts, paths, errors."""

import collections
import dataclasses
import functools
import operator
import warnings

import pytest

jax = pytest.importorskip("jax")

import numpy as np  # noqa: E402
from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402
from jax import flatten_util  # noqa: E402, F401

import minijax  # noqa: E402
from minijax.arrays.dtypes import float0  # noqa: E402

BOTH = (jax, minijax)
Point = collections.namedtuple("Point", "x y")


class Pair:
    """A container with a tag, without names for its children."""

    def __init__(self, first, second, tag="tag"):
        self.first, self.second, self.tag = first, second, tag

    def tree_flatten(self):
        return (self.first, self.second), self.tag

    @classmethod
    def tree_unflatten(cls, tag, children):
        return cls(*children, tag)


@dataclasses.dataclass
class Layer:
    """Two fields of data and one that belongs to the structure."""

    w: object
    b: object = 0
    name: str = dataclasses.field(default="layer", metadata={"static": True})


class Tag(str):
    """Text that is structure."""


for package in BOTH:
    package.tree_util.register_pytree_node_class(Pair)
    package.tree_util.register_dataclass(Layer)
    package.tree_util.register_static(Tag)


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
trees = st.recursive(leaves | st.none() | st.just(Tag("t")), containers, max_leaves=12)


def described(package, tree):
    """All that can be said of a tree in words that both packages share."""
    tools = package.tree_util
    flat, treedef = tools.tree_flatten(tree)
    pairs, same = tools.tree_flatten_with_path(tree)
    assert same == treedef
    paths = [path for path, _ in pairs]
    return {
        "leaves": flat,
        "text": str(treedef),
        "counts": (treedef.num_leaves, treedef.num_nodes),
        "children": list(map(str, treedef.children())),
        "empty": tools.treedef_is_leaf(treedef),
        "paths": list(map(tools.keystr, paths)),
        "simple": [tools.keystr(path, simple=True, separator="/") for path in paths],
        "keys": list(map(str, paths)),
        "stopped": tools.tree_leaves(tree, is_leaf=lambda x: isinstance(x, tuple)),
        "mapped": str(tools.tree_structure(tools.tree_map(lambda x: [x], tree))),
        "composed": str(treedef.compose(tools.tree_structure((0, [0])))),
    }


@given(trees)
def test_descriptions_agree(tree):
    ours, theirs = described(minijax, tree), described(jax, tree)
    assert ours == theirs


@given(trees, trees)
def test_structures_agree_about_equality(one, two):
    equal = [
        package.tree.structure(one) == package.tree.structure(two) for package in BOTH
    ]
    assert equal[0] == equal[1]


def outcome(call, package):
    """What a call returns, as text, or the class of its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return repr(call(package))
    except Exception as error:
        return type(error).__name__


@given(trees, trees)
def test_prefixes_agree(one, two):
    def broadcast(package):
        return package.tree.leaves(package.tree.broadcast(one, two))

    def mapped(package):
        pairs = package.tree.map(lambda x, y: (x, package.tree.leaves(y)), one, two)
        return package.tree.leaves(pairs)

    for call in (broadcast, mapped):
        assert outcome(call, minijax) == outcome(call, jax)


def fields(*args, **kwargs):
    def call(package):
        @dataclasses.dataclass
        class Fresh:
            a: int
            b: int = 2

        cls = package.tree_util.register_dataclass(Fresh, *args, **kwargs)
        return package.tree.leaves(cls(1, 3))

    return call


def structure(package, tree):
    return package.tree.structure(tree)


def partial(package):
    return package.tree_util.Partial(max, 1, key=2)


ADD = operator.add
TREES = {
    "unsortable keys": lambda p: p.tree.leaves({1: 2, "a": 3}),
    "sortable keys": lambda p: p.tree.leaves({3: 2, 1.5: 3, True: 4}),
    "other types": lambda p: p.tree.leaves([{1}, collections.deque([1]), b"s"]),
    "few leaves": lambda p: p.tree.unflatten(structure(p, [1, 2]), [1]),
    "many leaves": lambda p: p.tree.unflatten(structure(p, [1, 2]), [1, 2, 3]),
    "leaves by one": lambda p: p.tree.unflatten(structure(p, [1, 2]), iter("ab")),
    "length": lambda p: p.tree.map(ADD, (1, 2), (1, 2, 3)),
    "type": lambda p: p.tree.map(ADD, [1], (1,)),
    "keys": lambda p: p.tree.map(ADD, {"a": 1}, {"b": 1}),
    "leaf for a tree": lambda p: p.tree.map(ADD, {"a": (1,)}, {"a": 1}),
    "tree for a leaf": lambda p: p.tree.map(lambda a, b: b, {"a": 1}, {"a": (1, 2)}),
    "leaf for None": lambda p: p.tree.map(ADD, None, 1),
    "None for a leaf": lambda p: p.tree.map(lambda a, b: b, [1], [None]),
    "named tuple": lambda p: p.tree.map(ADD, Point(1, 2), (1, 2)),
    "metadata": lambda p: p.tree.map(ADD, Layer(1), Layer(1, name="n")),
    "wrong function": lambda p: p.tree.map(lambda a: a, [1], [1]),
    "twice": lambda p: p.tree_util.register_pytree_node_class(Pair),
    "built in": lambda p: p.tree_util.register_pytree_node(dict, len, len),
    "reduce": lambda p: p.tree.reduce(ADD, [1, {"a": 2}]),
    "reduce from": lambda p: p.tree.reduce(ADD, [1, {"a": 2}], 10),
    "reduce nothing": lambda p: p.tree.reduce(ADD, []),
    "reduce from None": lambda p: p.tree.reduce(ADD, [], None),
    "associative": lambda p: p.tree.reduce_associative(ADD, list("abcde")),
    "associative, none": lambda p: p.tree.reduce_associative(ADD, []),
    "associative, identity": lambda p: p.tree.reduce_associative(ADD, [], identity=3),
    "all": lambda p: (p.tree.all([True, {"a": ()}]), p.tree.all([1, 0])),
    "all leaves": lambda p: [
        p.tree_util.all_leaves(xs) for xs in ([1, 2], [1, (2,)], [None], [])
    ],
    "transpose": lambda p: p.tree.transpose(
        structure(p, {"a": 0, "b": 0}),
        structure(p, (0, [0])),
        {"a": (1, [2]), "b": (3, [4])},
    ),
    "transpose, no inner": lambda p: p.tree.transpose(
        structure(p, [0, 0]), None, [(1, 2), (3, 4)]
    ),
    "transpose, too few": lambda p: p.tree.transpose(
        structure(p, [0, 0]), structure(p, (0, 0)), [(1, 2)]
    ),
    "up to": lambda p: structure(p, (0, [0])).flatten_up_to((1, [{"a": 2}])),
    "not up to": lambda p: structure(p, (0, [0])).flatten_up_to((1, 2)),
    "tuple of structures": lambda p: p.tree_util.treedef_tuple([structure(p, [1])]),
    "children": lambda p: p.tree_util.treedef_children(structure(p, [1, (2,)])),
    "stop at None": lambda p: p.tree.flatten([None, 1], is_leaf=lambda x: x is None),
    "stop at a path": lambda p: p.tree.leaves_with_path(
        {"a": (1,), "b": (2,)},
        is_leaf=lambda path, x: p.tree_util.keystr(path) == "['b']",
        is_leaf_takes_path=True,
    ),
    "path": lambda p: p.tree.map_with_path(
        lambda path, *xs: (p.tree_util.keystr(path), *xs), {"a": [1]}, {"a": [(2, 3)]}
    ),
    "path, keys": lambda p: p.tree.map_with_path(ADD, {"a": 1}, {}),
    "partial": lambda p: p.tree.flatten(partial(p)),
    "partial, paths": lambda p: p.tree.leaves_with_path(partial(p)),
    "partial, mapped": lambda p: p.tree.map(lambda x: x + 1, partial(p)),
    "partial of partial": lambda p: p.tree.leaves(p.tree_util.Partial(partial(p), 2)),
    "partial of a functools": lambda p: p.tree_util.Partial(
        functools.partial(max, 1), 2
    )(3),
    "default dictionary": lambda p: p.tree.map(
        lambda x: x + 1, collections.defaultdict(list, b=1, a=2)
    ),
    "odd keys": lambda p: p.tree_util.keystr((1, "a", p.tree_util.GetAttrKey("b"))),
    "no dataclass": lambda p: p.tree_util.register_dataclass(int),
    "one list of fields": fields(data_fields=["a"]),
    "field missing": fields(["a"], []),
    "field unknown": fields(["a", "z"], ["b"]),
    "field twice": fields(["a", "b"], ["b"]),
    "field dropped": fields(["a"], [], ["b"]),
    "fields": fields(["b"], ["a"]),
    "ravel text": lambda p: p.flatten_util.ravel_pytree(["a"]),
    "ravel length": lambda p: p.flatten_util.ravel_pytree([1, 2.0])[1](np.ones(3)),
    "ravel dtype": lambda p: p.flatten_util.ravel_pytree([1, 2.0])[1](np.ones(2, int)),
    "ravel": lambda p: p.flatten_util.ravel_pytree({"a": np.ones((1, 2)), "b": 2})[0],
    "ravel weak": lambda p: p.flatten_util.ravel_pytree([1, 2])[0],
    "ravel nothing": lambda p: p.flatten_util.ravel_pytree([])[0],
    "unravel": lambda p: p.flatten_util.ravel_pytree([np.ones((1, 2)), 2])[1](
        np.ones(3)
    ),
}


@pytest.mark.parametrize("name", TREES)
def test_calls_agree(name):
    assert outcome(TREES[name], minijax) == outcome(TREES[name], jax)


def identity(x):
    """The function of most calls."""
    return x


ZERO = np.zeros((), float0)
VECTOR = np.ones(2, np.float32)
JVPS = {
    "text": lambda p: p.jvp(identity, ("a",), ("a",)),
    "object": lambda p: p.jvp(identity, (object(),), (1.0,)),
    "text for a tangent": lambda p: p.jvp(identity, (1.0,), ("a",)),
    "integer tangent": lambda p: p.jvp(identity, (1.0,), (1,)),
    "integer": lambda p: p.jvp(identity, (1,), (1,)),
    "bool": lambda p: p.jvp(identity, (True,), (False,)),
    "complex": lambda p: p.jvp(identity, (1j,), (1.0,)),
    "narrow": lambda p: p.jvp(identity, (VECTOR,), (VECTOR.astype(np.float16),)),
    "shape": lambda p: p.jvp(identity, ({"a": 1.0},), ({"a": np.ones(3)},)),
    "scalar": lambda p: p.jvp(identity, (VECTOR,), (1.0,)),
    "float0 shape": lambda p: p.jvp(identity, (1,), (np.zeros(2, float0),)),
    "structure": lambda p: p.jvp(identity, ({"a": 1.0},), ({"b": 1.0},)),
    "lists": lambda p: p.jvp(identity, [1.0], [1.0]),
    "list and tuple": lambda p: p.jvp(identity, (1.0,), [1.0]),
    "list in a tuple": lambda p: p.jvp(lambda x: x[0], ((1.0,),), ([1.0],)),
    "count": lambda p: p.jvp(identity, (1.0, 2.0), (1.0,)),
    "no tuples": lambda p: p.jvp(identity, 1.0, 1.0),
    "dictionary": lambda p: p.jvp(identity, (1.0,), {"a": 1.0}),
    "iterator": lambda p: p.jvp(identity, iter([1.0]), iter([1.0])),
    "not a function": lambda p: p.jvp(3, (1.0,), (1.0,)),
    "text returned": lambda p: p.jvp(lambda x: "a", (1.0,), (1.0,)),
    "arguments": lambda p: p.jvp(lambda x, y: x, (1.0,), (1.0,)),
    "None": lambda p: p.jvp(identity, (None,), (None,)),
    "None returned": lambda p: p.jvp(lambda x: None, (1.0,), (1.0,)),
    "None for a tangent": lambda p: p.jvp(identity, (1.0,), (None,)),
    "aux": lambda p: p.jvp(lambda x: (x, "aux"), (1.0,), (1.0,), has_aux=True),
    "numbers": lambda p: p.jvp(identity, (1.0,), (1.0,)),
    "product": lambda p: p.jvp(lambda x, n: x * n, (2.0, 3), (1.0, ZERO)),
    "strong primal": lambda p: p.jvp(lambda x: x * 2, (VECTOR,), (VECTOR,)),
    "independent": lambda p: p.jvp(lambda x: {"a": [VECTOR, 3.0]}, (1.0,), (1.0,))[1],
    "nothing": lambda p: p.jvp(lambda: 1.0, (), ()),
}


@pytest.mark.parametrize("name", JVPS)
def test_jvps_agree(name):
    assert outcome(JVPS[name], minijax) == outcome(JVPS[name], jax)


# One level of a tree.

LEVELS = [
    (1, [2, 3]),
    [1, 2],
    {"b": 1, "a": (2,)},
    Point(1, [2]),
    None,
    (),
    3,
    Pair(1, [2]),
    Layer(1, [2]),
    Tag("t"),
    collections.OrderedDict(b=1, a=2),
    collections.defaultdict(int, {"b": 1}),
    np.ones(2),
]


@pytest.mark.parametrize("tree", LEVELS, ids=lambda tree: type(tree).__name__)
def test_one_level_is_jax_s(tree):
    found = []
    for package in BOTH:
        util = package.tree_util
        registry, is_node = util.default_registry, util.is_tree_node(type(tree))
        answers = [is_node, registry.is_node(type(tree))]
        for name in ("flatten_one_level", "flatten_one_level_with_keys"):
            if not is_node:
                assert getattr(registry, name)(tree) is None
                with pytest.raises(ValueError, match="can't tree-flatten type: "):
                    getattr(util, name)(tree)
                continue
            children, aux = getattr(util, name)(tree)
            assert (list(children), aux) == (
                list(getattr(registry, name)(tree)[0]),
                getattr(registry, name)(tree)[1],
            )
            keyed = name.endswith("keys") and not isinstance(tree, Point)
            # Of named tuples, JAX 0.10.2 gives all children the first one's name.
            answers += [[(str(k), x) for k, x in children] if keyed else aux]
            answers += [aux, len(children)]
        found.append(answers)
    assert found[0] == found[1]


def test_the_registry_is_the_table_of_containers():
    for package in BOTH:
        registry = package.tree_util.default_registry

        class Box:
            def __init__(self, x):
                self.x = x

        @dataclasses.dataclass
        class Marked:
            x: object
            how: str = package.tree.static(default="so", metadata={"more": 1})

        apart, together = lambda box: ((box.x,), None), lambda _, xs, B=Box: B(*xs)
        registry.register_node(Box, apart, together)
        registry.register_dataclass_node(Marked, ["x"], ["how"])
        assert package.tree.leaves([Box(1), Marked(2)]) == [1, 2]
        pair = [Box(1), (2, 3)]
        leaves, structure = registry.flatten(pair, lambda x: type(x) is tuple)
        assert leaves == [1, (2, 3)] and "Box" in str(structure)
        pairs, _ = registry.flatten_with_path({"a": [5]})
        assert [(package.tree_util.keystr(p), x) for p, x in pairs] == [("['a'][0]", 5)]
        field = dataclasses.fields(Marked)[1]
        assert dict(field.metadata) == {"static": True, "more": 1}
        assert field.default == "so"
