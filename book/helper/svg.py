"""Drawing surface of the book's figures: one palette, text that fits, figures.

A figure is plain SVG text. Colours stand as ordinary attributes (light), so that a
viewer which strips styles still shows a readable card; a short style sheet inside the
figure switches to dark with the reader's system, and `palette_css` makes the sheet by
which the built page follows its own light/dark switch. Nothing depends on the date,
the machine or the order of a set: the same picture is the same text.
"""

import hashlib
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from html import escape

ROLES = ("primal", "tangent", "cotangent", "batch", "device", "neutral", "warn")

# token: (light, dark). The strong tone has at least 4.5:1 contrast on its soft tone.
PALETTE = {
    "primal": ("#1a67a8", "#74b9f2"),
    "primal-soft": ("#dce9f8", "#14314b"),
    "tangent": ("#a95000", "#f2a654"),
    "tangent-soft": ("#fde7d0", "#46290b"),
    "cotangent": ("#00704f", "#55cc9f"),
    "cotangent-soft": ("#d6f0e4", "#0d3a2b"),
    "batch": ("#763aa6", "#cda3f2"),
    "batch-soft": ("#ebdff6", "#37214d"),
    "device": ("#2d6870", "#86c9d1"),
    "device-soft": ("#dbecee", "#1a373b"),
    "neutral": ("#556070", "#a7b0bc"),
    "neutral-soft": ("#eef0f3", "#28303b"),
    "warn": ("#b0231b", "#ff968d"),
    "warn-soft": ("#fbdedc", "#4b1c1a"),
    "ink": ("#222832", "#dde3ea"),
    "muted": ("#5a6472", "#9ca6b3"),
    "line": ("#98a2af", "#5f6c7e"),
    "paper": ("#ffffff", "#121212"),
}

SANS = "-apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
SLIM = frozenset("iljtfrI.,:;'|!()[] ·")
BROAD = frozenset("mwMW@%&→∂—…")


def soft(role):
    """The pale tone of a role, for the inside of boxes."""
    return f"{role}-soft"


def check_role(role):
    """Return `role`, or raise ValueError naming the roles there are."""
    if role not in ROLES:
        raise ValueError(f"unknown role {role!r}; choose one of {', '.join(ROLES)}")
    return role


def _advance(char):
    """Approximate advance width of a proportional character, in em."""
    if unicodedata.combining(char):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return 1.05
    if char in SLIM:
        return 0.36
    if char in BROAD:
        return 0.95
    return 0.7 if char.isupper() else 0.59


def text_width(text, size=13, mono=False, bold=False):
    """Width in pixels that `text` needs, estimated on the generous side."""
    if mono:
        wide = [unicodedata.east_asian_width(c) in "WF" for c in text]
        bare = sum(1 for c in text if not unicodedata.combining(c))
        return (bare + sum(wide)) * 0.61 * size
    return sum(map(_advance, text)) * size * (1.08 if bold else 1.0)


def clip(text, width, size=13, mono=False, bold=False):
    """Shorten `text` with an ellipsis until it fits `width` pixels."""
    if text_width(text, size, mono, bold) <= width:
        return text

    def with_next(kept):
        return text_width(text[: kept + 1] + "…", size, mono, bold)

    kept = bisect_right(range(len(text)), width, key=with_next)
    return text[:kept].rstrip() + "…"


def wrap(text, width, size=13, mono=False, lines=None):
    """Break `text` at spaces into lines of at most `width` pixels."""
    rows = [""]
    for word in text.split():
        longer = f"{rows[-1]} {word}".strip()
        if text_width(longer, size, mono) <= width or not rows[-1]:
            rows[-1] = longer
        else:
            rows.append(word)
    rows = [clip(row, width, size, mono) for row in rows]
    if lines and len(rows) > lines:
        rows = [*rows[: lines - 1], clip(rows[lines - 1] + " …", width, size, mono)]
    return rows


def number(value):
    """A coordinate as short text: two decimals, no trailing zeros, no minus zero."""
    short = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if short in ("-0", "") else short


def route(command, *points):
    """One SVG path command with its points: route("L", (1, 2)) is "L1 2"."""
    return command + " ".join(f"{number(x)} {number(y)}" for x, y in points)


@dataclass(frozen=True)
class Extent:
    """A box or a line of text, remembered so that tests can measure the layout."""

    x: float
    y: float
    width: float
    height: float
    label: str


class Canvas:
    """Collects SVG elements, the colours they use, and the boxes drawn."""

    def __init__(self):
        self.parts, self.nodes, self.texts, self.used = [], [], [], set()

    def _paint(self, fill, stroke):
        classes, attributes = [], []
        for letter, name, token in (("f", "fill", fill), ("s", "stroke", stroke)):
            if token is None:
                attributes.append(f'{name}="none"' if name == "fill" else "")
                continue
            self.used.add((letter, token))
            classes.append(f"{letter}-{token}")
            attributes.append(f'{name}="{PALETTE[token][0]}"')
        plain = " ".join(filter(None, attributes))
        return f'class="{" ".join(classes)}" {plain}'

    def add(self, tag, fill=None, stroke=None, title=None, **attributes):
        """Append one element; underscores in names become hyphens."""
        pairs = "".join(
            f' {key.replace("_", "-")}="'
            f'{number(v) if isinstance(v, (int, float)) else escape(v)}"'
            for key, v in attributes.items()
        )
        inner = f"<title>{escape(title)}</title>" if title else ""
        end = f">{inner}</{tag}>" if inner else "/>"
        self.parts.append(f"<{tag} {self._paint(fill, stroke)}{pairs}{end}")

    def rect(self, x, y, width, height, fill, stroke=None, r=4, **attributes):
        """A rectangle with rounded corners."""
        self.add(
            "rect", fill, stroke, x=x, y=y, width=width, height=height, rx=r,
            **attributes,
        )  # fmt: skip

    def circle(self, x, y, r, fill, stroke=None, **attributes):
        """A circle around (x, y)."""
        self.add("circle", fill, stroke, cx=x, cy=y, r=r, **attributes)

    def path(self, d, stroke="line", width=1.5, fill=None, **attributes):
        """A path given by its SVG description."""
        self.add("path", fill, stroke, d=d, stroke_width=width, **attributes)

    def line(self, x1, y1, x2, y2, stroke="line", width=1.5, **attributes):
        """A straight line."""
        d = route("M", (x1, y1)) + route("L", (x2, y2))
        self.path(d, stroke, width, **attributes)

    def head(self, x, y, way="down", color="line", size=5):
        """An arrow head whose point is (x, y)."""
        dx, dy = {"down": (0, 1), "up": (0, -1), "right": (1, 0), "left": (-1, 0)}[way]
        bx, by = x - dx * size * 1.5, y - dy * size * 1.5
        corners = [(x, y), (bx + dy * size, by + dx * size)]
        corners.append((bx - dy * size, by - dx * size))
        points = " ".join(f"{number(a)},{number(b)}" for a, b in corners)
        self.add("polygon", color, None, points=points)

    def text(
        self, x, y, text, size=13, color="ink", anchor="start", mono=False,
        bold=False, turn=None, halo=False,
    ):  # fmt: skip
        """Text whose baseline passes through (x, y); a halo keeps it off lines."""
        extra = f' font-size="{number(size)}"'
        if anchor != "start":
            extra += f' text-anchor="{anchor}"'
        if mono:
            extra += f' font-family="{escape(MONO)}"'
        if bold:
            extra += ' font-weight="600"'
        if turn is not None:
            extra += f' transform="rotate({number(turn)} {number(x)} {number(y)})"'
        if turn is None:
            taken = text_width(text, size, mono, bold)
            left = x - taken * {"start": 0, "middle": 0.5, "end": 1}[anchor]
            box = Extent(left, y - 0.75 * size, taken, 0.95 * size, text)
            self.texts.append(box)
        if halo:
            extra += ' stroke-width="4" stroke-linejoin="round" paint-order="stroke"'
        at = f'x="{number(x)}" y="{number(y)}"'
        paint = self._paint(color, "paper" if halo else None)
        self.parts.append(
            f'<text {paint} {at} xml:space="preserve"{extra}>{escape(text)}</text>'
        )

    def node(
        self, x, y, width, height, label, role="neutral", size=13, mono=True,
        bold=False, dash=False, strong=False, title=None, r=5,
    ):  # fmt: skip
        """A box with a centred label, clipped to fit; remembered for the tests."""
        label = clip(label, width - 8, size, mono, bold)
        fill = check_role(role) if strong else soft(check_role(role))
        extra = {"stroke_dasharray": "4 3"} if dash else {}
        self.rect(x, y, width, height, fill, role, r=r, title=title, **extra)
        ink = "paper" if strong else "ink"
        middle = y + height / 2 + size * 0.35
        self.text(x + width / 2, middle, label, size, ink, "middle", mono, bold)
        self.nodes.append(Extent(x, y, width, height, label))

    def figure(self, width, height, title, desc):
        """Close the drawing: a `Figure` of the given natural size in pixels."""
        return Figure(self, width, height, title, desc)


def rules(used, tone, prefix=""):
    """CSS rules giving each used class its light (0) or dark (1) colour."""
    names = {"f": "fill", "s": "stroke"}
    return "".join(
        f"{prefix}.mjf .{letter}-{token}{{{names[letter]}:{PALETTE[token][tone]}}}"
        for letter, token in sorted(used)
    )


def palette_variables(tone, where):
    """CSS that gives plots their light (0) or dark (1) colours."""
    pairs = "".join(f"--mjf-{name}:{both[tone]};" for name, both in PALETTE.items())
    return f"{where}{{{pairs}}}"


def palette_css():
    """The style sheet by which figures follow the page's light/dark switch."""
    everything = {(letter, token) for letter in "fs" for token in PALETTE}
    light = rules(everything, 0, 'html[data-theme="light"] ')
    dark = rules(everything, 1, 'html[data-theme="dark"] ')
    light += palette_variables(0, 'html[data-theme="light"] .mjf')
    dark += palette_variables(1, 'html[data-theme="dark"] .mjf')
    return (light + dark).replace("}", "}\n")


class Figure:
    """A finished drawing with its text alternative.

    Shows itself in a notebook as SVG (`image/svg+xml`), and as `alt` where only text
    can be shown. `nodes` and `texts` hold the extents of the boxes and of the
    level lines of text, for tests of the layout.
    """

    def __init__(self, canvas, width, height, title, desc):
        self.width, self.height = round(width), round(height)
        self.title, self.desc = title, desc
        self.nodes, self.texts = tuple(canvas.nodes), tuple(canvas.texts)
        self.svg = self._assemble(canvas)

    @property
    def alt(self):
        """The text alternative: title, then description."""
        return f"{self.title}. {self.desc}".strip()

    def _assemble(self, canvas):
        dark = rules(canvas.used | {("f", "paper")}, 1)
        return self._frame("\n".join(canvas.parts), dark)

    def _frame(self, body, dark):
        """The drawing with its title, description, card and colours for the dark."""
        seed = f"{body}{self.title}{self.desc}{self.width}x{self.height}"
        key = "mjf-" + hashlib.sha256(seed.encode()).hexdigest()[:10]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="mjf" role="img" '
            f'aria-labelledby="{key}-t {key}-d" width="{self.width}" '
            f'height="{self.height}" viewBox="0 0 {self.width} {self.height}" '
            f'style="max-width:100%;height:auto;--w:{self.width}px" '
            f'font-family="{escape(SANS)}">\n'
            f'<title id="{key}-t">{escape(self.title)}</title>\n'
            f'<desc id="{key}-d">{escape(self.desc)}</desc>\n'
            f"<style>@media (prefers-color-scheme:dark){{{dark}}}</style>\n"
            f'<rect class="mjf-card f-paper" fill="{PALETTE["paper"][0]}" rx="6" '
            f'width="{self.width}" height="{self.height}"/>\n{body}\n</svg>\n'
        )

    def _repr_svg_(self):
        return self.svg

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"image/svg+xml": self.svg, "text/plain": self.alt}

    def __repr__(self):
        return self.alt

    def save(self, path):
        """Write the SVG text to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)
