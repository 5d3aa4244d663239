"""The stepper of pictures: one picture after the other, each with a sentence."""

from html import escape

from .steppers import Stepper

# On paper, and where scripts do not run, the pictures stand side by side.
STYLE = """
.mjf-reel ol{display:flex;flex-wrap:wrap;gap:1rem}
.mjf-reel li{flex:1 1 16rem;max-width:100%;overflow-x:auto;margin:0}
.mjf-reel li p{margin:.2rem 0;min-height:3em}
@media screen{.mjf-reel[data-ready] li:not(.now){display:none}}
"""


def reel(frames, title):
    """Step through pictures.

    `frames` is a sequence of (figure, sentence): what a function of this module has
    drawn, and what there is to see in it.
    """
    frames = list(frames)
    if not frames:
        raise ValueError(f"the stepper {title!r} has no pictures")
    items = [("", f"{x.svg}<p>{escape(said)}</p>") for x, said in frames]
    lines = [f"{k}. {said}" for k, (_, said) in enumerate(frames, 1)]
    alt = "\n".join([f"{title} ({len(frames)} steps)", *lines])
    return Stepper("reel", items, title, alt, STYLE)
