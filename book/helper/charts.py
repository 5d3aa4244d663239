"""Small charts: bars, a number line, tables, and the style of the plots."""

from html import escape

from . import plots
from .svg import PALETTE, ROLES, Canvas, check_role, clip, soft, text_width


def quantity(value):
    """A number as people write it: thousands apart, at most four digits of fraction."""
    if isinstance(value, int) or float(value).is_integer():
        return f"{int(value):,}".replace(",", "\u202f")
    return f"{value:.4g}"


UNTITLED = "Counts"


def bars(items, unit="", title=UNTITLED):
    """Horizontal bars for counts: calls, bytes, flops; a title stands above them.

    `items` is a dictionary from label to number (0 or more), or a sequence of
    (label, number) or (label, number, role).
    """
    rows = items.items() if hasattr(items, "items") else items
    rows = [(*row, "primal")[:3] for row in rows]
    rows = [(str(name), value, check_role(role)) for name, value, role in rows]
    if any(value < 0 for _, value, _ in rows):
        raise ValueError("bars draw amounts: every number must be 0 or more")
    canvas, largest = Canvas(), max([v for _, v, _ in rows], default=0) or 1
    names = min(max([text_width(n, 13) for n, _, _ in rows] + [20]), 170)
    tails = [f"{quantity(v)} {unit}".strip() for _, v, _ in rows]
    tail = max([text_width(t, 13) for t in tails] + [20])
    left, full = names + 20, max(440 - names - tail - 30, 80)
    width, top = left + full + tail + 18, 10
    if title != UNTITLED:
        canvas.text(10, 20, title, 13, "ink", bold=True)
        width, top = max(width, text_width(title, 13, bold=True) + 20), 36
    for k, ((name, value, role), text) in enumerate(zip(rows, tails, strict=True)):
        y, length = top + k * 28, full * value / largest
        canvas.text(left - 8, y + 15, clip(name, names, 13), 13, "ink", "end")
        canvas.rect(left, y, max(length, 1.5), 20, soft(role), role, 2)
        canvas.text(left + length + 8, y + 15, text, 13, "ink")
    said = "; ".join(f"{n}: {t}" for (n, _, _), t in zip(rows, tails, strict=True))
    height = top + 6 + 28 * max(len(rows), 1)
    return canvas.figure(width, height, title, said or "nothing to count")


def _ticks(low, high, count):
    step = (high - low) / count
    return [low + k * step for k in range(count + 1)]


def _lanes(spans):
    """The lowest lane for each (left, right) span in which it meets no other."""
    ends, lanes = [], []
    for left, right in spans:
        free = next((k for k, end in enumerate(ends) if end <= left), len(ends))
        ends[free : free + 1] = [right]
        lanes.append(free)
    return lanes


def number_line(points, low=None, high=None, ticks=5, title="Number line"):
    """Labelled points on a line: `points` maps label to number."""
    items = sorted(dict(points).items(), key=lambda item: item[1])
    values = [v for _, v in items]
    low = min(values, default=0) if low is None else low
    high = max(values, default=1) if high is None else high
    high = high if high > low else low + 1
    place = lambda v: 40 + 380 * (v - low) / (high - low)  # noqa: E731
    spots = []
    for label, value in items:
        half = text_width(label, 13, True) / 2 + 6
        middle = min(max(place(value), half), 460 - half)
        spots.append((middle - half, middle + half))
    lanes, canvas = _lanes(spots), Canvas()
    base = 40 + 22 * max(lanes, default=0)
    canvas.line(20, base, 440, base, "neutral", 1.5)
    for tick in _ticks(low, high, ticks):
        canvas.line(place(tick), base - 4, place(tick), base + 4, "neutral", 1.5)
        canvas.text(place(tick), base + 20, f"{tick:.6g}", 11, "muted", "middle")
    for (_, value), lane in zip(items, lanes, strict=True):
        at, top = place(value), base - 12 - 22 * lane
        canvas.line(at, base, at, top, "primal", 1)
        canvas.circle(at, base, 4.5, "primal")
    for (label, _), (left, right), lane in zip(items, spots, lanes, strict=True):
        top = base - 16 - 22 * lane
        canvas.text((left + right) / 2, top, label, 13, "primal", "middle", True,
                    halo=True)  # fmt: skip
    said = "; ".join(f"{label} at {value:.6g}" for label, value in items)
    return canvas.figure(460, base + 32, title, said or "no points")


class Table:
    """Rows and columns; numbers to the right. Shows as an HTML table or as text."""

    def __init__(self, rows, header, caption):
        self.header = [str(cell) for cell in header]
        self.rows = [[_cell_text(cell) for cell in row] for row in rows]
        numeric = [[isinstance(c, (int, float)) for c in row] for row in rows]
        self.right = [bool(n) and all(n) for n in zip(*numeric, strict=True)]
        self.right += [False] * (len(self.header) - len(self.right))
        self.caption = caption

    @property
    def alt(self):
        """The table in aligned columns of text."""
        lines = [self.header, *self.rows] if self.header else self.rows
        sizes = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = []
        for line in lines:
            cells = zip(line, sizes, self.right, strict=True)
            padded = [c.rjust(n) if r else c.ljust(n) for c, n, r in cells]
            text.append("  ".join(padded).rstrip())
        return "\n".join([self.caption, *text] if self.caption else text)

    def _line(self, cells, tag):
        sides = ["right" if r else "left" for r in self.right]
        row = "".join(
            f'<{tag} style="text-align:{side}">{escape(cell)}</{tag}>'
            for cell, side in zip(cells, sides, strict=True)
        )
        return f"<tr>{row}</tr>"

    @property
    def html(self):
        """The table as HTML."""
        body = "\n".join(self._line(row, "td") for row in self.rows)
        head = f"<thead>{self._line(self.header, 'th')}</thead>" if self.header else ""
        caption = f"<caption>{escape(self.caption)}</caption>" if self.caption else ""
        table = f'<table class="mjf-table">{caption}{head}\n<tbody>\n{body}\n</tbody>'
        return f"{table}</table>\n"

    def _repr_html_(self):
        return self.html

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html, "text/plain": self.alt}

    def __repr__(self):
        return self.alt


def _cell_text(cell):
    if isinstance(cell, bool) or not isinstance(cell, (int, float)):
        return str(cell)
    return quantity(cell) if cell == cell and abs(cell) != float("inf") else str(cell)


def table(rows, header=(), caption=""):
    """A table; columns of numbers stand to the right."""
    return Table([list(row) for row in rows], list(header), caption)


def plot_style():
    """Set matplotlib's defaults to the book's; returns the colours by role.

    In a notebook plots are shown as figures of the book from then on.
    """
    import matplotlib as mpl
    from cycler import cycler

    plots.show_in_notebooks()

    colors = {role: PALETTE[role][0] for role in ROLES}
    order = [colors[r] for r in ("primal", "tangent", "cotangent", "batch", "device")]
    markers = cycler(linestyle=["-", "--", "-.", ":", (0, (5, 1, 1, 1))])
    mpl.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=order) + markers,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.grid": True,
            "grid.alpha": 0.3,
            "figure.figsize": (6.0, 3.4),
            "figure.dpi": 110,
            "figure.constrained_layout.use": True,
            "font.size": 11,
            "axes.facecolor": "none",
            "figure.facecolor": "none",
            "savefig.facecolor": "none",
            "legend.frameon": False,
            "svg.hashsalt": "minijax",
            "svg.fonttype": "none",
            **dict.fromkeys(plots.INK.split(), PALETTE["ink"][0]),
            **dict.fromkeys(plots.LINES.split(), PALETTE["line"][0]),
        }
    )
    return colors
