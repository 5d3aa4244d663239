"""The stepping widget: `bind` falling through traces, one event at a time.

The widget is an ordered list first: where scripts and styles are stripped it reads as
a list of steps from top to bottom. A few lines of script add the two buttons.
"""

import hashlib
from html import escape

from .svg import PALETTE, ROLES, check_role
from .towers import role_of

BADGES = "\n".join(f".mjf-fall b.{r}{{background:{PALETTE[r][0]}}}" for r in ROLES)

STYLE = f"""<style>
.mjf-fall{{max-width:620px;margin:.5rem 0}}
.mjf-fall ol{{list-style:none;margin:0;padding:0}}
.mjf-fall li{{display:flex;flex-wrap:wrap;gap:.1rem .6rem;align-items:baseline;
padding:.2rem 0 .2rem calc(var(--d)*clamp(.5rem,3vw,1.4rem));margin:0}}
.mjf-fall b{{font:600 .82em ui-monospace,Menlo,Consolas,monospace;color:#fff;
border-radius:5px;padding:.12em .5em;white-space:nowrap}}
{BADGES}
.mjf-fall code{{background:none;border:0;padding:0;color:inherit;white-space:pre-wrap;
font-size:.88em;overflow-wrap:anywhere}}
.mjf-fall li.later{{opacity:.4}}
.mjf-fall li.now code{{font-weight:700}}
.mjf-fall li.now::before{{content:"\\25b8";margin-left:-.9em;width:.3em}}
.mjf-fall p{{display:flex;gap:.5rem;align-items:center;margin:.6rem 0 0}}
.mjf-fall p[hidden]{{display:none}}
.mjf-fall ol{{padding-left:1em}}
.mjf-fall button{{font:inherit;padding:.1em .8em;cursor:pointer}}
</style>"""

SCRIPT = """<script>
document.querySelectorAll(".mjf-fall:not([data-ready])").forEach(function (box) {
  var items = box.querySelectorAll("li"), bar = box.querySelector("p"), at = 0;
  if (items.length < 2) return;
  var buttons = bar.querySelectorAll("button"), count = bar.querySelector("span");
  function show(k) {
    at = Math.max(0, Math.min(items.length - 1, k));
    items.forEach(function (li, i) {
      li.classList.toggle("later", i > at);
      li.classList.toggle("now", i === at);
    });
    buttons[0].disabled = at === 0;
    buttons[1].disabled = at === items.length - 1;
    count.textContent = "step " + (at + 1) + " of " + items.length;
  }
  buttons[0].onclick = function () { show(at - 1); };
  buttons[1].onclick = function () { show(at + 1); };
  box.setAttribute("data-ready", "");
  bar.hidden = false;
  show(0);
});
</script>"""

BUTTONS = (
    '<p hidden><button type="button">‹ back</button>'
    '<button type="button">next ›</button><span aria-live="polite"></span></p>'
)


class Fall:
    """A recorded sequence of (trace, text) steps; shows itself as the widget."""

    def __init__(self, steps, roles, title):
        self.steps, self.roles, self.title = steps, roles, title
        names = dict.fromkeys(name for name, _ in steps)
        self.depth = {name: k for k, name in enumerate(names)}

    @property
    def alt(self):
        """The steps as numbered lines of text."""
        lines = [f"{k}. {name}: {text}" for k, (name, text) in enumerate(self.steps, 1)]
        return "\n".join([f"{self.title} ({len(self.steps)} steps)", *lines])

    def _item(self, name, text):
        return (
            f'<li style="--d:{self.depth[name]}"><b class="{self.roles[name]}">'
            f"{escape(name)}</b> <code>{escape(text)}</code></li>"
        )

    @property
    def html(self):
        """The widget: the list, two buttons, and the script that steps."""
        items = "\n".join(self._item(*step) for step in self.steps)
        key = hashlib.sha256(items.encode()).hexdigest()[:10]
        return (
            f'<div class="mjf-fall" id="mjf-fall-{key}" role="group" '
            f'aria-label="{escape(self.title)}">\n{STYLE}\n'
            f"<ol>\n{items}\n</ol>\n{BUTTONS}\n{SCRIPT}\n</div>\n"
        )

    def _repr_html_(self):
        return self.html

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/html": self.html, "text/plain": self.alt}

    def __repr__(self):
        return self.alt


def fall(events, roles=None, title="bind, step by step"):
    """Step through recorded events of dispatch.

    `events` is a sequence of (trace, text): the trace's label (or the trace itself, of
    which the type's name is taken) and what happened there. Traces are indented in the
    order in which they first appear. `roles` maps labels to palette roles where the
    name alone does not tell.
    """
    steps = []
    for trace, text in events:
        name = trace if isinstance(trace, str) else type(trace).__name__
        steps.append((name, str(text)))
    chosen = {n: check_role((roles or {}).get(n, role_of(n))) for n, _ in steps}
    return Fall(tuple(steps), chosen, title)
