"""The dataflow picture of a jaxpr."""

from .layout import Layout, ranks
from .svg import Canvas, check_role, clip, route, text_width

BOX, PILL, STEP, SMALL = 32, 26, 76, 11
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def letters(k):
    """The k-th variable name: a … z, then aa, ab, …"""
    name = ""
    while k >= 0:
        k, rest = divmod(k, 26)
        name, k = LETTERS[rest] + name, k - 1
    return name


def _is_literal(atom):
    return hasattr(atom, "val")


def _is_dropped(var):
    return type(var).__name__ == "DropVar"


def _type_of(var):
    """Short text of a variable's type, '' if it has none."""
    aval = getattr(var, "aval", None)
    if aval is None:
        return ""
    short = getattr(aval, "str_short", None)
    return short(short_dtypes=True) if callable(short) else str(aval)


def _typed(name, var):
    """A variable with its type: a:f32[3]."""
    kind = _type_of(var)
    return f"{name}:{kind}" if kind else name


def _title(eqn):
    return str(getattr(eqn.primitive, "name", eqn.primitive))


def _name_all(jaxpr, names):
    """Names by identity of the variable, in order of appearance."""
    bound = [*getattr(jaxpr, "constvars", ()), *jaxpr.invars]
    bound += [v for eqn in jaxpr.eqns for v in eqn.outvars]
    bound = [v for v in bound if not _is_dropped(v)]
    return {id(v): names(v) if names else letters(k) for k, v in enumerate(bound)}


def _is_program(value):
    inner = getattr(value, "jaxpr", value)
    return hasattr(inner, "eqns")


def _params_text(eqn):
    """Parameters short enough to print under the primitive's name."""
    params = getattr(eqn, "params", None) or {}
    words = []
    for key, value in params.items():
        if _is_program(value):
            words.append(f"{key}={{…}}")
        elif not callable(value) and value is not None:
            words.append(f"{key}={value}")
    return " ".join(words)


class _Graph:
    """Nodes and edges of a jaxpr, before and after layout."""

    def __init__(self, jaxpr, names, roles):
        self.jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
        self.names, self.roles = _name_all(self.jaxpr, names), roles
        self.labels, self.subs, self.kinds, self.roles_of = [], [], [], []
        self.edges, self.owner = [], {}
        for var in getattr(self.jaxpr, "constvars", ()):
            self._source(var, "const", "neutral")
        for var in self.jaxpr.invars:
            self._source(var, "in", "primal")
        for eqn in self.jaxpr.eqns:
            self._equation(eqn)
        inner = len(self.labels)
        for var in self.jaxpr.outvars:
            self._sink(var)
        rank = ranks(len(self.labels), [(s, t) for s, t, _ in self.edges])
        last = max(rank, default=0)
        last += any(r == last for r in rank[:inner]) and len(rank) > inner
        rank[inner:] = [last] * (len(rank) - inner)
        pairs = [(s, t) for s, t, _ in self.edges]
        self.layout = Layout(map(self._width, range(len(rank))), pairs, rank)

    def _role(self, thing, default):
        if self.roles is None:
            return default
        if callable(self.roles):
            return check_role(self.roles(thing) or default)
        keyed = {id(key): role for key, role in self.roles.items()}
        return check_role(keyed.get(id(thing), default))

    def _node(self, label, sub, kind, role):
        self.labels.append(label)
        self.subs.append(sub)
        self.kinds.append(kind)
        self.roles_of.append(role)
        return len(self.labels) - 1

    def _source(self, var, kind, role):
        text = _typed(self.names[id(var)], var)
        self.owner[id(var)] = self._node(text, "", kind, self._role(var, role))

    def _equation(self, eqn):
        values = [str(v.val) for v in eqn.invars if _is_literal(v)]
        label = " ".join([_title(eqn), *(clip(v, 60, 13, True) for v in values)])
        sub = clip(_params_text(eqn), 170, SMALL, True)
        node = self._node(label, sub, "eqn", self._role(eqn, "neutral"))
        for var in eqn.invars:
            self._edge(var, node)
        for var in eqn.outvars:
            self.owner[id(var)] = node

    def _sink(self, var):
        text = str(var.val) if _is_literal(var) else self.names[id(var)]
        self._edge(var, self._node(text, "", "out", self._role(var, "device")))

    def _edge(self, var, node):
        if not _is_literal(var):
            self.edges.append((self.owner[id(var)], node, var))

    def _width(self, node):
        label = text_width(self.labels[node], 13, mono=True, bold=True)
        sub = text_width(self.subs[node], SMALL, mono=True)
        return max(label, sub, 30) + 20


def _levels(graph):
    """Top edge of each rank; ranks with parameters are a little taller."""
    tops, y = [], 34
    for layer in graph.layout.layers:
        tops.append(y)
        real = [n for n in layer if n < len(graph.labels)]
        y += STEP + (14 if any(graph.subs[n] for n in real) else 0)
    return tops, y


def _height(graph, node):
    if node >= len(graph.labels):
        return 0
    taller = 14 if graph.subs[node] else 0
    return BOX + taller if graph.kinds[node] == "eqn" else PILL


def _draw_edge(canvas, graph, tops, k, mind):
    """One edge: a smooth curve through its waypoints, its variable named once."""
    source, target, var = graph.edges[k]
    chain, x = graph.layout.chains[k], graph.layout.x
    y = tops[graph.layout.rank[source]] + _height(graph, source)
    d = route("M", (x[source], y))
    for a, b in zip(chain, chain[1:], strict=False):
        goal = tops[graph.layout.rank[b]] - (5 if b == target else 0)
        bend = (y + goal) / 2
        d += route("C", (x[a], bend), (x[b], bend), (x[b], goal))
        if b != target:
            y = goal + BOX
            d += route("L", (x[b], y))
    role = graph._role(var, "neutral")
    canvas.path(d, "line" if role == "neutral" else role, 1.6)
    canvas.head(x[target], tops[graph.layout.rank[target]], color="line", size=4)
    if graph.kinds[source] == "eqn" and id(var) not in mind:
        mind.setdefault(id(var), (source, var))


def _draw_names(canvas, graph, tops, mind):
    """Names of the variables, below the equations that make them."""
    made = {}
    for source, var in mind.values():
        made.setdefault(source, []).append(var)
    for source, group in made.items():
        texts = [_typed(graph.names[id(v)], v) for v in group]
        y = tops[graph.layout.rank[source]] + _height(graph, source) + 14
        x = graph.layout.x[source] + 6
        canvas.text(x, y, ", ".join(texts), SMALL, "muted", mono=True, halo=True)


def _draw_node(canvas, graph, tops, node):
    width, height = graph.layout.widths[node], _height(graph, node)
    x, y = graph.layout.x[node] - width / 2, tops[graph.layout.rank[node]]
    kind, role, sub = graph.kinds[node], graph.roles_of[node], graph.subs[node]
    label = "" if sub else graph.labels[node]
    radius = 5 if kind == "eqn" else PILL / 2
    canvas.node(x, y, width, height, label, role, r=radius, bold=kind == "eqn",
                dash=kind == "const")  # fmt: skip
    if sub:
        middle = x + width / 2
        canvas.text(middle, y + 19, graph.labels[node], 13, "ink", "middle", True, True)
        canvas.text(middle, y + 36, sub, SMALL, "muted", "middle", True)


def _shift(graph, left):
    graph.layout.x = [x + left for x in graph.layout.x]


def jaxpr(jaxpr, roles=None, names=None, title="Jaxpr"):
    """The dataflow of a jaxpr: inputs at the top, equations, outputs at the bottom.

    Anything with `.invars`, `.eqns`, `.outvars` will do (`.constvars` if it has them);
    a closed jaxpr is opened. Literals (with `.val`) stand inside the equation. `roles`
    maps equations and variables to palette roles (a dictionary or a function that may
    return None), `names` gives variables their names (default a, b, c, …).
    """
    graph, canvas, mind = _Graph(jaxpr, names, roles), Canvas(), {}
    _shift(graph, 14)
    tops, bottom = _levels(graph)
    for k in range(len(graph.edges)):
        _draw_edge(canvas, graph, tops, k, mind)
    for node in range(len(graph.labels)):
        _draw_node(canvas, graph, tops, node)
    _draw_names(canvas, graph, tops, mind)
    tails = [graph.layout.x[s] + 12 + text_width(_type_of(v) + "abc:", SMALL, True)
             for s, v in mind.values()]  # fmt: skip
    width = max([graph.layout.width() + 14, *tails, 160])
    canvas.text(14, 20, "in", SMALL, "muted")
    inner, eqns = graph.jaxpr, graph.jaxpr.eqns
    counted = f"{len(inner.invars)} inputs, {len(eqns)} equations"
    steps = "; ".join(_sentence(graph, eqn) for eqn in eqns[:40])
    more = f"; and {len(eqns) - 40} more" if len(eqns) > 40 else ""
    desc = f"{counted}, {len(inner.outvars)} outputs. {steps}{more}".rstrip()
    return canvas.figure(width, bottom - STEP + PILL + 14, title, desc)


def _sentence(graph, eqn):
    """An equation as text, for the text alternative."""
    say = [str(v.val) if _is_literal(v) else graph.names[id(v)] for v in eqn.invars]
    made = [graph.names.get(id(v), "_") for v in eqn.outvars]
    return f"{' '.join(made)} = {' '.join([_title(eqn), *say])}"
