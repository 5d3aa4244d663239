"""The lift shaft (where we are in the book) and the stack of traces (dispatch)."""

from typing import NamedTuple

from .svg import Canvas, check_role, soft, text_width, wrap


class Floor(NamedTuple):
    """A chapter of the book: its part, its name, and what it makes of a program.

    `stands` is False while the floors above have been built first.
    """

    part: str
    name: str
    says: str
    stands: bool = True


P1, P2, P3, P4, P5, P6, P7 = (
    "I  Interpreters",
    "II  Programs as data",
    "III  Staging out",
    "IV  The machine",
    "V  The library",
    "VI  Many processors",
    "VII  Was it worth it?",
)
FLOORS = (
    Floor(P1, "Interception", "every operation becomes a call: bind(mul, w, x)"),
    Floor(P1, "Arrays and dtypes", "numbers become arrays: float32[8,3]"),
    Floor(P1, "NumPy", "familiar names become few: x @ w, x.sum()"),
    Floor(P1, "Forward mode", "values become pairs: (w, ẇ)"),
    Floor(P1, "Pytrees", "arguments become leaves: {'w': *, 'b': *}"),
    Floor(P1, "vmap", "one example becomes a batch: x[3] → x[8,3]"),
    Floor(P2, "Jaxprs", "calls become text: { lambda ; w x y. let … }"),
    Floor(P2, "Errors", "failures become sentences that name your line"),
    Floor(P2, "Linearize", "one program becomes two: a known and a linear one"),
    Floor(P2, "Transpose & grad", "the linear program runs backwards"),
    Floor(P2, "Custom derivatives", "a rule of ours replaces the derivative"),
    Floor(P3, "jit", "many calls become one program, remembered"),
    Floor(P3, "Emitted Python", "equations become lines of Python over NumPy"),
    Floor(P3, "Callbacks", "a program calls its reader back"),
    Floor(P3, "Branches", "if and while become equations"),
    Floor(P3, "Scan", "a thousand steps become one equation"),
    Floor(P4, "Kernels", "equations become loop nests, as data"),
    Floor(P4, "Text", "loop nests become instructions"),
    Floor(P4, "Fusion", "four loops become one"),
    Floor(P4, "Memory", "fifty arrays become one arena"),
    Floor(P4, "Whole programs", "all steps become one function, loops included"),
    Floor(P4, "Passes", "the program becomes a shorter, equal program"),
    Floor(P4, "Functions", "exp becomes a polynomial, sixteen at a time"),
    Floor(P4, "Vectors", "sixteen numbers become one instruction"),
    Floor(P4, "Matmul", "a product becomes tiles that fit"),
    Floor(P4, "Calls", "the call itself becomes machine code"),
    Floor(P4, "Threads", "one loop becomes parts for every core"),
    Floor(P5, "Indexing", "x[i, :, mask] becomes gather and scatter"),
    Floor(P5, "Sorting", "an order becomes a rule like any other"),
    Floor(P5, "Windows", "a convolution becomes products of windows"),
    Floor(P5, "Linear algebra", "factors become equations with derivatives"),
    Floor(P5, "Random", "chance becomes a function of a key"),
    Floor(P5, "The library", "hundreds of names become what stands already"),
    Floor(P6, "GPU", "loops become thousands of threads"),
    Floor(P6, "Device", "a card becomes a place for arrays"),
    Floor(P6, "Many devices", "one device becomes a mesh"),
    Floor(P6, "Many machines", "one mesh spans many processes"),
    Floor(P7, "Experiments", "the paper's results are measured again"),
    Floor(P7, "Training", "the program becomes a trained network"),
    Floor(P7, "Export", "a jaxpr becomes StableHLO, for other machines"),
    Floor(P7, "Discovery", "pure code that repeats is compiled unasked"),
    Floor(P7, "As JAX", "programs that say jax run here, unchanged"),
)

WIDTH, SHAFT, TOWER = 460, 24, 216
OPEN, SHUT, GAP = 20, 6, 6
ROOM = 112  # for the lines beside an open part that has few floors


def _place(floors, today):
    """Rows from the roof down: (index, floor, y, height), and the height used."""
    here = floors[today - 1].part
    inside = sum(floor.part == here for floor in floors)
    rows, y, last = [], 34, None
    for i in range(len(floors), 0, -1):
        floor = floors[i - 1]
        y += GAP if last not in (None, floor.part) else 0
        y += max(0, ROOM - OPEN * inside) if last == here != floor.part else 0
        height = OPEN if floor.part == here else SHUT
        rows.append((i, floor, y, height))
        y, last = y + height, floor.part
    return rows, y


def _storey(canvas, row, today):
    """Draw one floor of the tower: built, today's, or still to come."""
    i, floor, y, height = row
    lit, built = i == today, i < today and floor.stands
    fill = "tangent-soft" if lit else soft("primal") if built else "paper"
    edge = "tangent" if lit else "primal" if built else "line"
    thin = 0.6 if height == SHUT else 1
    dash = {} if lit or built or height == SHUT else {"stroke_dasharray": "3 3"}
    canvas.rect(
        SHAFT, y + 1, TOWER - SHAFT, height - 2, fill, edge, 2,
        stroke_width=2 if lit else thin, title=f"{i} {floor.name}", **dash,
    )  # fmt: skip
    if height == OPEN:
        ink = "ink" if lit or built else "muted"
        canvas.text(SHAFT + 28, y + 14.5, str(i), 12, ink, "end", bold=lit)
        canvas.text(SHAFT + 37, y + 14.5, floor.name, 13, ink, bold=lit)


def _shaft(canvas, top, bottom, car):
    """The lift: a rope from the roof and a car at today's floor."""
    x = SHAFT / 2 - 3
    canvas.rect(x - 7, top, 14, bottom - top, "neutral-soft", None, 3)
    canvas.line(x, top, x, car, "neutral", 1)
    canvas.rect(x - 6, car - 8, 12, 16, "tangent", None, 3)
    canvas.text(x, car + 4, "ƒ", 12, "paper", "middle", bold=True)


def _labels(canvas, rows, today):
    """Names of the parts, in the gutter beside the tower."""
    parts = {}
    for i, floor, y, height in rows:
        spans = parts.setdefault(floor.part, [])
        spans.append((i, y, y + height))
    for part, spans in parts.items():
        open_ = any(i == today for i, _, _ in spans)
        top, bottom = spans[0][1], spans[-1][2]
        canvas.line(TOWER + 8, top + 1, TOWER + 8, bottom - 1, "line", 1)
        middle = top + 14 if open_ else (top + bottom) / 2 + 4
        ink = "ink" if open_ else "muted"
        canvas.text(TOWER + 22, middle, part, 12, ink, bold=open_)
    return parts


def _callout(canvas, says, y, top, bottom):
    """What today's floor makes of the program, beside the floor."""
    x, width = TOWER + 22, WIDTH - TOWER - 24
    lines = wrap(says, width - 20, 13, lines=4)
    height = len(lines) * 18 + 12
    start = min(max(y - height / 2, top + 22), max(top + 22, bottom - height))
    canvas.line(TOWER, y, x, y, "tangent", 2)
    canvas.rect(x, start, width, height, "tangent-soft", "tangent", 5)
    for k, line in enumerate(lines):
        canvas.text(x + 10, start + 20 + 18 * k, line, 13)


def lift(floor, says=None, floors=None):
    """The lift shaft: the running function's journey, with today's floor lit.

    `floor` is its number, from 1. `says` replaces the line beside today's floor, and
    `floors` the book's table of contents (a sequence of `Floor`). Floors below are
    solid, floors above drawn in outline; only today's part is open.
    """
    floors = FLOORS if floors is None else floors
    if not 1 <= floor <= len(floors):
        raise ValueError(f"there is no floor {floor}: the book's last is {len(floors)}")
    canvas, today = Canvas(), floors[floor - 1]
    says = today.says if says is None else says
    rows, end = _place(floors, floor)
    canvas.text(SHAFT, 22, "machine code, many devices", 12, "muted")
    car = next(y + h / 2 for i, _, y, h in rows if i == floor)
    _shaft(canvas, 34, end, car)
    for row in rows:
        _storey(canvas, row, floor)
    part = _labels(canvas, rows, floor)[today.part]
    _callout(canvas, says, car, part[0][1], part[-1][2])
    canvas.text(SHAFT, end + 22, "loss(w, x, y)", 13, mono=True)
    canvas.line(SHAFT / 2 - 3, end + 26, SHAFT / 2 - 3, end + 6, "tangent", 2)
    canvas.head(SHAFT / 2 - 3, end + 2, "up", "tangent")
    built = sum(f.stands for f in floors[: floor - 1])
    floors_below = "1 floor below is" if built == 1 else f"{built} floors below are"
    below = f"{floors_below} built" if built else "the ground floor"
    desc = f"{today.name} ({today.part.split('  ')[0]}): {says}. {below.capitalize()}."
    return canvas.figure(WIDTH, end + 36, f"Floor {floor} of {len(floors)}", desc)


TRACE_ROLES = (
    ("jvp", "tangent"),
    ("linear", "tangent"),
    ("transpose", "cotangent"),
    ("vmap", "batch"),
    ("batch", "batch"),
    ("impl", "primal"),
    ("eval", "device"),
    ("kernel", "device"),
    ("python", "device"),
    ("jaxpr", "primal"),
    ("stag", "primal"),
)


def role_of(name):
    """The role suggested by the name of a trace or a rule table."""
    lower = name.lower()
    return next((role for part, role in TRACE_ROLES if part in lower), "neutral")


def chain(trace):
    """The traces from `trace` down through `.parent` to the one that has none."""
    traces = []
    while trace is not None:
        if any(trace is seen for seen in traces):
            raise ValueError("the chain of parents comes back to itself")
        traces.append(trace)
        trace = getattr(trace, "parent", None)
    return traces


def _aside(canvas, corner, trace, attribute):
    """A trace to the right of a box, and the arrow that leads there."""
    x, y = corner
    name = type(trace).__name__
    canvas.text(x + 34, y + 10, f".{attribute}", 11, "muted", "middle", mono=True)
    canvas.line(x, y + 17, x + 64, y + 17, "line", 1.5)
    canvas.head(x + 68, y + 17, "right", "line")
    wide = text_width(name, 14, mono=True) + 24
    canvas.node(x + 68, y, wide, 34, name, "tangent", 14)


def stack(trace, current=None, note=None, roles=None, aside=None):
    """The dispatch picture: `bind` falls through a trace and its parents.

    `trace` is the innermost trace; the picture follows `.parent`. `current` (one of the
    traces, the innermost by default) is lit, and `note` stands beside it. `roles` maps
    type names to palette roles where the name alone does not tell. `aside` is the name
    of an attribute of `current`, another trace, to which a second arrow leads.
    """
    traces, canvas = chain(trace), Canvas()
    current = trace if current is None else current
    names = [type(t).__name__ for t in traces]
    width = max([text_width(n, 14, mono=True) for n in names] + [110]) + 28
    width, x, y, least = min(width, 280), 10, 50, 0
    lines = wrap(note, 200, 12) if note else []
    canvas.node(x + width / 2 - 44, 8, 88, 26, "bind", "neutral", 13, strong=True, r=13)
    for k, (name, t) in enumerate(zip(names, traces, strict=True)):
        role = check_role((roles or {}).get(name, role_of(name)))
        canvas.line(x + width / 2, y - 16, x + width / 2, y - 3, "line", 1.5)
        canvas.head(x + width / 2, y, color="line")
        lit = t is current
        canvas.node(x, y, width, 34, name, role, 14, strong=lit, bold=lit)
        below = 0
        if lit and aside:
            below = 36
            _aside(canvas, (x + width, y), getattr(t, aside), aside)
        for j, line in enumerate(lines if lit else []):
            canvas.text(x + width + 14, y + 21 + below + (j * 16), line, 12)
            least = y + 50 + below + j * 16
        if k + 1 < len(names):
            canvas.text(x + width / 2 + 12, y + 48, ".parent", 11, "muted", mono=True)
        y += 56
    right = 214 if lines or aside else 0
    y = max(y, least)
    order = " → ".join(["bind", *names])
    lit = f" Now in {type(current).__name__}" if traces else " No trace"
    lit += f", beside it {type(getattr(current, aside)).__name__}" if aside else ""
    desc = f"{order}.{lit}{': ' + note if note else ''}."
    return canvas.figure(width + 20 + right, y - 14, "Stack of traces", desc)
