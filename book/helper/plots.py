"""Plots by matplotlib in the book's palette: SVG with a text alternative.

The text alternative is made of what the plot says itself: titles, labels of axes, and
the names in the legend. Colours of the palette follow the reader's switch between
light and dark, other colours stay.
"""

import io
import re

from .svg import PALETTE, Figure, palette_variables, rules

PIXELS = 4 / 3  # of a page, for a point of matplotlib
INK = "text.color axes.labelcolor axes.titlecolor xtick.labelcolor ytick.labelcolor"
LINES = "axes.edgecolor xtick.color ytick.color grid.color"
VIEW = re.compile(r'(?<=viewBox=")[^"]*')
NAMED = re.compile(r' id="(?:[a-z]+[\dD]?[a-z]*_|matplotlib\.axis_)\d+"')


def describe(figure):
    """Title and description of a plot, from the words in it."""
    panels = figure.get_axes()
    above = figure.get_suptitle()
    if len(panels) == 1:
        above = above or panels[0].get_title()
        said = [_says(panel) for panel in panels]
    else:
        said = [_joined(": ", panel.get_title(), _says(panel)) for panel in panels]
    return above or "Plot", "; ".join(filter(None, said))


def _says(panel):
    """What one pair of axes shows."""
    what = _joined(" against ", panel.get_ylabel(), panel.get_xlabel())
    what = what or ("a picture" if panel.images else "")
    labels = [str(line.get_label()) for line in panel.get_lines()]
    curves = ", ".join(label for label in labels if not label.startswith("_"))
    return _joined(": ", what, curves)


def _joined(between, *texts):
    return between.join(filter(None, texts))


def draw(figure):
    """The plot as a figure of the book."""
    file = io.StringIO()
    about = {"Date": None, "Creator": None, "Format": None, "Type": None}
    figure.savefig(file, format="svg", bbox_inches="tight", metadata=about)
    return Plot(file.getvalue(), *describe(figure))


class Plot(Figure):
    """What matplotlib drew, in the frame of the book's figures."""

    def __init__(self, text, title, desc):
        _, _, *self.box = map(float, VIEW.search(text)[0].split())
        self.text, self.title, self.desc = text, title, desc
        self.width, self.height = (round(side * PIXELS) for side in self.box)
        self.nodes = self.texts = ()
        dark = palette_variables(1, ".mjf")
        self.svg = self._frame(self._body(), rules({("f", "paper")}, 1) + dark)

    def _body(self):
        """The drawing: no names that nothing refers to, colours that can follow."""
        start = self.text.index("<defs>")
        body = self.text[start : self.text.rindex("</svg>")].rstrip()
        body = NAMED.sub("", body).replace("*{", ".mjf-plot *{")
        body = body.replace("xlink:href", "href")
        for token, (light, _) in PALETTE.items():
            body = body.replace(f": {light}", f": var(--mjf-{token}, {light})")
        scale = f"scale({self.width / self.box[0]:.4f})"
        return f'<g class="mjf-plot" transform="{scale}">\n{body}\n</g>'


def show_in_notebooks():
    """Let a notebook show plots as figures of the book; elsewhere nothing changes."""
    import matplotlib.pyplot as plt
    from IPython import get_ipython
    from matplotlib.figure import Figure as Drawn

    shell = get_ipython()
    if shell is None:
        return
    plt.switch_backend(plt.get_backend())  # as it wakes it asks for PNG
    kinds = shell.display_formatter.formatters
    kinds["image/png"].pop(Drawn, None)
    kinds["image/svg+xml"].for_type(Drawn, lambda drawn: draw(drawn).svg)
    kinds["text/plain"].for_type(
        Drawn, lambda drawn, printer, _: printer.text(". ".join(describe(drawn)))
    )
