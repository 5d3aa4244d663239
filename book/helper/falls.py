"""The stepper of dispatch: `bind` falling through traces, one event at a time."""

from html import escape

from .steppers import Stepper
from .svg import PALETTE, ROLES, check_role
from .towers import role_of

BADGES = "\n".join(f".mjf-fall b.{r}{{background:{PALETTE[r][0]}}}" for r in ROLES)

STYLE = f"""
.mjf-fall{{max-width:620px}}
.mjf-fall ol{{padding-left:1em}}
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
"""


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
    depths = {name: k for k, name in enumerate(dict.fromkeys(n for n, _ in steps))}
    chosen = {n: check_role((roles or {}).get(n, role_of(n))) for n in depths}
    items = [
        (
            f' style="--d:{depths[name]}"',
            f'<b class="{chosen[name]}">{escape(name)}</b> <code>{escape(text)}</code>',
        )
        for name, text in steps
    ]
    lines = [f"{k}. {name}: {text}" for k, (name, text) in enumerate(steps, 1)]
    alt = "\n".join([f"{title} ({len(steps)} steps)", *lines])
    return Stepper("fall", items, title, alt, STYLE)
