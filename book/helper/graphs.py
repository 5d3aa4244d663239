"""The dataflow picture of a jaxpr."""

from .layout import Layout, ranks
from .svg import Canvas, check_role, clip, route, text_width

PILL, SPACE, LINE, SMALL, WIDEST = 26, 34, 15, 11, 190
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


def _is_program(value):
    return hasattr(getattr(value, "jaxpr", value), "eqns")


def _type_of(var):
    """Short text of a variable's type, '' if it has none."""
    aval = getattr(var, "aval", None)
    if aval is None:
        return ""
    short = getattr(aval, "str_short", None)
    return short() if callable(short) else str(aval)


def _title(eqn):
    return str(getattr(eqn.primitive, "name", eqn.primitive))


def _call(eqn):
    """The primitive's name; with literals, its arguments: sub 1.0 ·"""
    if not any(map(_is_literal, eqn.invars)):
        return _title(eqn)
    values = [str(v.val) if _is_literal(v) else "·" for v in eqn.invars]
    return " ".join([_title(eqn), *(clip(v, 60, 13, True) for v in values)])


def _value_text(value):
    """A parameter as text: programs as {…}, how many of them in a sequence."""
    if _is_program(value):
        return "{…}"
    if isinstance(value, (tuple, list)) and value and all(map(_is_program, value)):
        return f"{{…}}×{len(value)}"
    return str(value)


def _params_text(eqn):
    """The parameters that say something, as one line."""
    params = getattr(eqn, "params", None) or {}
    said = {
        key: _value_text(value)
        for key, value in params.items()
        if value is not None and (_is_program(value) or not callable(value))
    }
    return " ".join(f"{key}={text}" for key, text in said.items())


class _Namer:
    """Names and types of variables, by identity, in order of appearance."""

    def __init__(self, jaxpr, names):
        bound = [*getattr(jaxpr, "constvars", ()), *jaxpr.invars]
        bound += [v for eqn in jaxpr.eqns for v in eqn.outvars]
        self.known = {}
        for var in bound:
            if not _is_dropped(var) and id(var) not in self.known:
                name = names(var) if names else letters(len(self.known))
                self.known[id(var)] = str(name)

    def atom(self, atom):
        """A literal's value or a variable's name."""
        if _is_literal(atom):
            return str(atom.val)
        return self.known.get(id(atom), "_")

    def typed(self, var):
        """A variable with its type: a:f32[3]."""
        kind = _type_of(var)
        return f"{self.atom(var)}:{kind}" if kind else self.atom(var)

    def sentence(self, eqn):
        """An equation as text: c = mul a b."""
        made = " ".join(map(self.atom, eqn.outvars))
        return " ".join([made, "=", _title(eqn), *map(self.atom, eqn.invars)])


class _Node:
    """A box of the picture: its lines of text, its kind and its role."""

    def __init__(self, kind, lines, role, title=None):
        self.kind, self.role, self.title = kind, role, title
        first, *rest = lines
        self.lines = [clip(first, WIDEST, 13, True, True)]
        self.lines += [clip(line, WIDEST, SMALL, True) for line in rest if line]
        wide = [text_width(self.lines[0], 13, True, True)]
        wide += [text_width(line, SMALL, True) for line in self.lines[1:]]
        self.width = max(*wide, 24) + 20
        self.height = PILL + LINE * (len(self.lines) - 1)


class _Graph:
    """Nodes and edges of a jaxpr, and where they stand."""

    def __init__(self, jaxpr, names, roles):
        self.namer, self.roles = _Namer(jaxpr, names), roles
        self.nodes, self.edges, self.owner = [], [], {}
        constants = getattr(jaxpr, "constvars", ())
        for var in [*constants, *jaxpr.invars]:
            constant = any(var is c for c in constants)
            role = self.role(var, "neutral" if constant else "primal")
            kind = "const" if constant else "in"
            self.owner[id(var)] = self._add(kind, [self.namer.typed(var)], role)
        sources = len(self.nodes)
        for eqn in jaxpr.eqns:
            self._equation(eqn)
        sinks = len(self.nodes)
        for var in jaxpr.outvars:
            role = self.role(var, "device")
            self._join(var, self._add("out", [self.namer.atom(var)], role), 0, 1)
        self._lay_out(sources, sinks)

    def role(self, thing, default):
        """The role given to a variable or an equation."""
        if callable(self.roles):
            return check_role(self.roles(thing) or default)
        keyed = {id(key): role for key, role in (self.roles or {}).items()}
        return check_role(keyed.get(id(thing), default))

    def _add(self, *node):
        self.nodes.append(_Node(*node))
        return len(self.nodes) - 1

    def _equation(self, eqn):
        made = ", ".join(map(self.namer.typed, eqn.outvars))
        lines = [_call(eqn), _params_text(eqn), made]
        said = f"{self.namer.sentence(eqn)} {_params_text(eqn)}".strip()
        node = self._add("eqn", lines, self.role(eqn, "neutral"), said)
        wires = [v for v in eqn.invars if not _is_literal(v)]
        for port, var in enumerate(wires):
            self._join(var, node, port, len(wires))
        self.owner.update((id(v), node) for v in eqn.outvars)

    def _join(self, var, node, port, ports):
        if not _is_literal(var):
            inset = min(0.5 * self.nodes[node].width / ports, 26)
            shift = (port - (ports - 1) / 2) * inset
            self.edges.append((self.owner[id(var)], node, var, shift))

    def _lay_out(self, sources, sinks):
        pairs = [(source, target) for source, target, _, _ in self.edges]
        rank = ranks(len(self.nodes), pairs)
        if sources:
            rank[sources:sinks] = [max(r, 1) for r in rank[sources:sinks]]
            rank = ranks(len(self.nodes), pairs, rank)
        last = 1 + max(rank[:sinks], default=-1)
        rank[sinks:] = [last] * (len(rank) - sinks)
        still = (0, last) if sources else (last,)
        layout = Layout([n.width for n in self.nodes], pairs, rank, still=still)
        self.x, self.rank = [14 + x for x in layout.x], layout.rank
        self.chains, self.width = layout.chains, layout.width() + 28
        self._stand(layout.layers)

    def _stand(self, layers):
        """Top edge and height of every rank."""
        self.top, self.tall, y = [], [], 12
        for layer in layers:
            real = [n for n in layer if n < len(self.nodes)]
            tall = max([self.nodes[n].height for n in real], default=0)
            self.top.append(y)
            self.tall.append(tall)
            y += tall + SPACE
        self.height = max(y - SPACE + 12, 40)


def _draw_edge(canvas, graph, k):
    """One edge: a smooth curve through its waypoints to its port."""
    source, target, var, shift = graph.edges[k]
    chain, y = graph.chains[k], graph.top[graph.rank[source]]
    y += graph.nodes[source].height
    x = graph.x[source]
    d = route("M", (x, y))
    for node in chain[1:]:
        level, end = graph.rank[node], node == target
        goal = graph.top[level] - (4 if end else 0)
        right = graph.x[node] + (shift if end else 0)
        bend = goal - SPACE * 0.55
        start = graph.top[level - 1] + graph.tall[level - 1]
        d += route("L", (x, start)) if start > y else ""
        d += route("C", (x, start + SPACE * 0.55), (right, bend), (right, goal))
        x, y = right, goal
    role = graph.role(var, "neutral")
    color = "line" if role == "neutral" else role
    canvas.path(d, color, 1.6)
    canvas.head(x, y + 4, color=color, size=4)


def _draw_node(canvas, graph, k):
    """One box with its lines of text."""
    node = graph.nodes[k]
    x, y = graph.x[k] - node.width / 2, graph.top[graph.rank[k]]
    if node.kind != "eqn":
        dash = node.kind == "const"
        canvas.node(x, y, node.width, PILL, node.lines[0], node.role, r=13, dash=dash)
        return
    canvas.node(x, y, node.width, node.height, "", node.role, title=node.title)
    canvas.text(graph.x[k], y + 18, node.lines[0], 13, "ink", "middle", True, True)
    for row, line in enumerate(node.lines[1:]):
        at = y + 18 + LINE * (row + 1)
        canvas.text(graph.x[k], at, line, SMALL, "muted", "middle", True)


def jaxpr(jaxpr, roles=None, names=None, title="Jaxpr"):
    """The dataflow of a jaxpr: inputs at the top, equations, outputs at the bottom.

    Anything with `.invars`, `.eqns`, `.outvars` will do (`.constvars` if it has them);
    a closed jaxpr is opened. Literals (with `.val`) stand inside the equation, a dot
    for each argument that comes by an arrow; arrows enter in the arguments' order.
    `roles` maps equations and variables to palette roles (a dictionary, or a function
    that may return None), `names` gives a variable its name (default a, b, c, … in
    order of appearance).
    """
    program, canvas = getattr(jaxpr, "jaxpr", jaxpr), Canvas()
    graph, eqns = _Graph(program, names, roles), program.eqns
    for k in range(len(graph.edges)):
        _draw_edge(canvas, graph, k)
    for k in range(len(graph.nodes)):
        _draw_node(canvas, graph, k)
    steps = "; ".join(graph.namer.sentence(eqn) for eqn in eqns[:40])
    more = f"; and {len(eqns) - 40} more" if len(eqns) > 40 else ""
    outs = ", ".join(map(graph.namer.atom, program.outvars))
    said = f"{len(program.invars)} inputs, {len(eqns)} equations"
    desc = f"{said}. {steps}{more}. Outputs: {outs or 'none'}.".replace(". . ", ". ")
    return canvas.figure(max(graph.width, 120), graph.height, title, desc)
