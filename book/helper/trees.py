"""The picture of a pytree: containers branch, leaves stand in flattening order."""

from .svg import Canvas, clip, route, text_width

ROW, HIGH = 32, 24


def _label(leaf):
    """Text for a leaf: dtype[shape] for arrays, else a short repr."""
    if hasattr(leaf, "dtype") and hasattr(leaf, "shape"):
        return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
    return clip(repr(leaf), 170, 13, mono=True)


def _sorted(mapping):
    try:
        return sorted(mapping.items())
    except TypeError:
        return list(mapping.items())


def builtin_children(obj):
    """(label, [(key, child), …]) of a built-in container, None for a leaf."""
    if obj is None:
        return "None", []
    if isinstance(obj, dict):
        return type(obj).__name__, [(repr(k), v) for k, v in _sorted(obj)]
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        pairs = zip(obj._fields, obj, strict=True)
        return type(obj).__name__, [(f".{k}", v) for k, v in pairs]
    if isinstance(obj, (list, tuple)):
        return type(obj).__name__, [(str(k), v) for k, v in enumerate(obj)]
    return None


class _Walk:
    """Places of all nodes: one row per leaf, one column per depth."""

    def __init__(self, obj, children):
        self.children, self.nodes, self.row, self.leaves = children, [], 0, 0
        self.root = self._visit(obj, "", 0)
        self.columns, self.keys = self._columns()

    def _visit(self, obj, key, depth):
        found = self.children(obj)
        node = {"key": str(key), "depth": depth, "leaf": None, "kids": []}
        self.nodes.append(node)
        if found is None:
            node["label"], node["leaf"] = _label(obj), self.leaves
            self.leaves += 1
        else:
            node["label"] = str(found[0])
            node["kids"] = [self._visit(c, k, depth + 1) for k, c in found[1]]
        kids = node["kids"]
        node["row"] = (kids[0]["row"] + kids[-1]["row"]) / 2 if kids else self.row
        self.row += not kids
        return node

    def _columns(self):
        """Left edge of the boxes, and width of the keys, at each depth."""
        depths = 1 + max(n["depth"] for n in self.nodes)
        keys, boxes = [0.0] * depths, [0.0] * depths
        for n in self.nodes:
            key, box = text_width(n["key"], 12, True), _box(n)
            keys[n["depth"]] = max(keys[n["depth"]], key)
            boxes[n["depth"]] = max(boxes[n["depth"]], box)
        edges, x = [], 10
        for depth in range(depths):
            x += keys[depth] + (34 if depth else 0)
            edges.append(x)
            x += boxes[depth]
        return edges, keys


def _box(node):
    return text_width(node["label"], 13, mono=True) + 18


def _draw(canvas, walk, node):
    x, y = walk.columns[node["depth"]], 12 + node["row"] * ROW
    for kid in node["kids"]:
        left, goal = walk.columns[kid["depth"]], 12 + kid["row"] * ROW + HIGH / 2
        end = left - text_width(kid["key"], 12, True) - 8
        start, bend = x + _box(node), walk.columns[kid["depth"]] - 24
        bend = min(bend - walk.keys[kid["depth"]], end)
        middle = y + HIGH / 2
        half = (start + bend) / 2
        d = route("M", (start, middle))
        d += route("C", (half, middle), (half, goal), (bend, goal))
        canvas.path(d + route("L", (end, goal)), "line", 1.5)
        canvas.text(left - 4, goal + 4, kid["key"], 12, "muted", "end", True)
        _draw(canvas, walk, kid)
    leaf = node["leaf"] is not None
    empty = not leaf and not node["kids"]
    role = "primal" if leaf else "neutral"
    canvas.node(x, y, _box(node), HIGH, node["label"], role, dash=empty,
                r=HIGH / 2 if leaf else 4)  # fmt: skip
    if leaf:
        canvas.text(x + _box(node) + 7, y + 16, str(node["leaf"]), 11, "muted")


def _outline(node):
    """The tree as one line of text."""
    if node["leaf"] is not None:
        return node["label"]
    if node["label"] == "None":
        return "None"
    inner = ", ".join(f"{k['key']}: {_outline(k)}" for k in node["kids"])
    return f"{node['label']}({inner})"


def tree(obj, children=None):
    """The picture of a pytree, leaves numbered in flattening order.

    `children(obj)` returns (label, [(key, child), …]) for a container and None for a
    leaf; the default knows dict (by sorted key), list, tuple, namedtuple and None.
    """
    walk, canvas = _Walk(obj, children or builtin_children), Canvas()
    _draw(canvas, walk, walk.root)
    right = max(walk.columns[n["depth"]] + _box(n) for n in walk.nodes)
    count = f"{walk.leaves} leaves" if walk.leaves else f"{len(walk.nodes)} nodes"
    title = f"Tree with {count}"
    height = 12 + max(walk.row, 1) * ROW + 4
    return canvas.figure(right + 32, height, title, clip(_outline(walk.root), 9000))
