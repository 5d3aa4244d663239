"""Lists that a reader walks through, one item at a time, with buttons or a slider.

A stepper is an ordered list first: where scripts and styles are stripped, on paper and
in a mail, all of its items are there, from top to bottom. A few lines of script add
the controls, which a keyboard reaches: two buttons and a slider.
"""

import hashlib
from html import escape

STYLE = """.mjf-steps{margin:.5rem 0}
.mjf-steps ol{list-style:none;margin:0;padding:0}
.mjf-steps>p{display:flex;flex-wrap:wrap;gap:.5rem;align-items:center;margin:.6rem 0 0}
.mjf-steps>p[hidden]{display:none}
.mjf-steps button{font:inherit;padding:.1em .8em;cursor:pointer}
.mjf-steps input{width:8rem;min-width:0}
@media print{.mjf-steps>p{display:none}}
"""

SCRIPT = """<script>
document.querySelectorAll(".mjf-steps:not([data-ready])").forEach(function (box) {
  var items = box.querySelectorAll("li"), bar = box.querySelector(":scope > p");
  var buttons = bar.querySelectorAll("button"), slider = bar.querySelector("input");
  var count = bar.querySelector("span"), at = 0, last = items.length - 1;
  if (last < 1) return;
  function show(k) {
    at = Math.max(0, Math.min(last, k));
    items.forEach(function (li, i) {
      li.classList.toggle("later", i > at);
      li.classList.toggle("now", i === at);
    });
    buttons[0].disabled = at === 0;
    buttons[1].disabled = at === last;
    slider.value = at;
    count.textContent = "step " + (at + 1) + " of " + items.length;
  }
  buttons[0].onclick = function () { show(at - 1); };
  buttons[1].onclick = function () { show(at + 1); };
  slider.max = last;
  slider.oninput = function () { show(Number(slider.value)); };
  box.setAttribute("data-ready", "");
  bar.hidden = false;
  show(0);
});
</script>"""

CONTROLS = (
    '<p hidden><button type="button">‹ back</button>'
    '<button type="button">next ›</button>'
    '<input type="range" min="0" value="0" aria-label="step"/>'
    '<span aria-live="polite"></span></p>'
)


class Stepper:
    """A list of items in HTML, the style of its kind, and what it says as text."""

    def __init__(self, kind, items, title, alt, style=""):
        self.kind, self.items, self.title = kind, tuple(items), title
        self.alt, self.style = alt, style

    @property
    def html(self):
        """The list, its controls, and the script that steps."""
        inside = "\n".join(f"<li{attributes}>{x}</li>" for attributes, x in self.items)
        key = hashlib.sha256(inside.encode()).hexdigest()[:10]
        return (
            f'<div class="mjf-steps mjf-{self.kind}" id="mjf-{self.kind}-{key}" '
            f'role="group" aria-label="{escape(self.title)}">\n'
            f"<style>\n{STYLE}{self.style}\n</style>\n"
            f"<ol>\n{inside}\n</ol>\n{CONTROLS}\n{SCRIPT}\n</div>\n"
        )

    def _repr_html_(self):
        return self.html

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html, "text/plain": self.alt}

    def __repr__(self):
        return self.alt
