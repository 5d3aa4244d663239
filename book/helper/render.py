"""How the built page shows the figures.

MyST-NB writes an SVG output to a file and shows it as an image, which no page style
reaches. `InlineFigures` puts the book's own figures into the page instead, so that they
follow the reader's switch between light and dark. Run as a program this module prints
the style sheet `book/_static/figures.css`.
"""

from .svg import palette_css

HEADER = "/* Printed by `python -m minijax_book.render`; not edited by hand. */\n"

PAGE_CSS = """\
.mjf-wrap {
  overflow-x: auto;
  margin: 0.5rem 0;
}
.mjf-wrap svg.mjf {
  display: block;
}
@media (max-width: 600px) {
  /* A wide figure scrolls before its text becomes too small to read. */
  .mjf-wrap svg.mjf {
    min-width: calc(var(--w) * 0.75);
  }
}
html[data-theme] .mjf .mjf-card {
  fill: transparent;
}
table.mjf-table {
  border-collapse: collapse;
  margin: 0.5rem 0;
  font-variant-numeric: tabular-nums;
}
table.mjf-table th,
table.mjf-table td {
  padding: 0.2rem 0.8rem;
  border-bottom: 1px solid rgba(128, 140, 155, 0.35);
}
"""


class InlineFigures:
    """MyST-NB plugin (entry point group `myst_nb.mime_renderers`)."""

    mime_priority_overrides = ()

    @staticmethod
    def handle_mime(renderer, data, inline):
        """Nodes for one of the book's figures; None for anything else."""
        if data.mime_type != "image/svg+xml" or 'class="mjf"' not in data.string:
            return None
        from docutils import nodes

        html = f'<div class="mjf-wrap">{data.string}</div>'
        return [nodes.raw("", html, format="html", classes=["output", "image_svg"])]


def page_css():
    """The whole style sheet of the page's figures."""
    return HEADER + palette_css() + PAGE_CSS


if __name__ == "__main__":
    print(page_css(), end="")
