"""Make the first page and its picture, from the chapters, the package and records.

python -m book.tools.landing    write index.md and its pictures

The prose is that of `book/landing.md`; what stands between `<!--` and `-->` there is
replaced by what is made here.
"""

import importlib
import json
import re

from book.helper.ratios import ratios
from book.helper.rides import Storey, ride
from book.helper.svg import Canvas, Figure
from book.helper.waits import waits
from book.tools import counts, files, owner, pages, suites
from book.tools.source import PACKAGE, ROOT, Chapter, exercises, read_chapters

TEMPLATE = ROOT / "book" / "landing.md"
PICTURE = "book/_static/ride.svg"
CARD = (1200, 630)  # width and height of the preview of a link
FAVICON = "book/_static/favicon.svg"
FOLDED = {"hide-cell", "hide-input", "remove-cell", "remove-input"}
WORDS, LINES = 190, 20  # read in a minute
FIRST = "chapters/01_interception"
ROWS = (
    "call, two arrays of 4",
    "SeLU layer, 1e+06",
    "softmax, 4096x1024",
    "matrix product, 512",
    "cold compile, 200 equations",
    "HMM fit, 20 gradient steps",
    "Newton-CG, logistic regression, 1000x50",
    "transformer block, gradient, 8x64x128",
)


def minutes(chapter: Chapter) -> int:
    """How long the page of a chapter is read, in steps of five minutes."""
    words = sum(len(line.split()) for _, line in chapter.prose)
    shown = [cell.text for cell in chapter.cells[1:] if not FOLDED & {*cell.tags}]
    lines = sum(bool(line.strip()) for text in shown for line in text.split("\n"))
    return max(5, 5 * round((words / WORDS + lines / LINES) / 5))


def address() -> str:
    """The repository, as pip and git take it."""
    return f"https://github.com/{owner.current()}/minijax"


def colab(page: str) -> str:
    """The address at which Colab opens a chapter."""
    where = f"github/{owner.current()}/minijax/blob/{owner.reference()}/{page}.ipynb"
    return f"https://colab.research.google.com/{where}"


def picture() -> Figure:
    """`loss` on each part of the book, drawn from what the package says."""
    jax = importlib.import_module(PACKAGE)
    jnp = importlib.import_module(f"{PACKAGE}.numpy")

    def loss(w, x, y):
        residual = jnp.tanh(x @ w) - y
        return (residual * residual).sum()

    arrays = jnp.ones(3), jnp.ones((8, 3)), jnp.zeros(8)
    pair = jax.jvp(jnp.tanh, (0.5,), (1.0,))
    emitted = jax.jit(loss, backend="python").lower(*arrays).compile().as_text()
    kernels = jax.jit(loss).lower(*arrays).as_text("kernels")
    names = {*dir(jnp), *dir(jax.lax), *dir(jax.random), *dir(jax.nn)}
    primitives = counts.count_rules()["primitives"]
    sigmoid = jax.make_jaxpr(jax.nn.sigmoid)(arrays[2]).eqns[0]
    storeys = [
        Storey(
            "I · Interpreters",
            "operations are watched, pushed forward, batched",
            "tanh(0.5, tangent 1.0) → ({:.3f}, {:.3f})".format(*map(float, pair)),
        ),
        Storey(
            "II · Programs as data",
            "the calls are written down, and turned around",
            _line(str(jax.make_jaxpr(loss)(*arrays)), "tanh"),
        ),
        Storey(
            "III · Staging out",
            "the program is translated once, and kept",
            _line(emitted, "tanh"),
        ),
        Storey(
            "IV · The machine",
            "one loop, in vectors, on every core",
            _line(kernels, "= tanh"),
        ),
        Storey(
            "V · The library",
            f"{len(names)} names, {primitives} primitives",
            f"jax.nn.sigmoid: {sigmoid}".partition("#")[0],
        ),
        Storey(
            "VI · Many processors",
            "a GPU, and a mesh of devices",
            _line(_on_a_card(loss, arrays), "= tanhf"),
        ),
    ]
    return ride("residual = jnp.tanh(x @ w) - y", storeys)


def _on_a_card(fun, arrays) -> str:
    """The CUDA C of the first kernel of a function."""
    part = lambda name: importlib.import_module(f"{PACKAGE}.{name}")  # noqa: E731
    closed = part("jaxprs.jaxpr").make_jaxpr(fun)(*arrays)
    lower, fuse = part("kernels.lowering").lower, part("fusion.fusion_pass").fuse
    kernel = fuse(lower(closed)).steps[0].kernel
    shape = part("gpu.schedules").choose_launch(kernel)
    return part("gpu.codegen").cuda_function(kernel, shape, "loss")


def _line(text: str, part: str) -> str:
    """The first line of a program with something in it, without its comment."""
    lines = [line.partition("#")[0].strip() for line in text.split("\n")]
    return next(line for line in lines if part in line)


def numbers(chapters: list[Chapter]) -> str:
    """What the book holds, in one row."""
    rows = [counts.count(chapter) for chapter in chapters]
    words, lines, _, figures, tasks = (sum(column) for column in zip(*rows))
    rules = counts.count_rules()
    said = {
        "chapters": len([c for c in chapters if c.floor.is_spine]),
        "words": words,
        "lines of the package": lines,
        "figures": figures,
        "exercises, all solved": tasks,
        "primitives": rules["primitives"],
        "rules": rules["rules"],
    }
    each = [f"<li><b>{n:,}</b> {name}</li>" for name, n in said.items()]
    return f'<ul class="front-counts">{"".join(each)}</ul>'


def speed(record: dict) -> str:
    """The chart of a few rows of the recorded measurements."""
    rows = {name: row for name, row in record["rows"].items() if name in ROWS}
    dots = [(name, rows[name]["ratio"]["jax"], rows[name]["must"]) for name in ROWS]
    return _shown(ratios(dots, title="Our time divided by that of jax.jit"))


def suites_chart() -> str:
    """The chart of test-suites, the one that JAX takes longest for on top."""
    rows = sorted(suites.rows(), key=lambda row: -row.theirs)
    bars = [(row.name.removeprefix("dm_"), row.theirs, row.ours) for row in rows]
    return _shown(waits(bars, title="How long the tests of packages take"))


def contents(chapters: list[Chapter]) -> str:
    """The chapters by parts, each with its question and minutes."""
    lines, start = ["**Before we start**", ""], -1
    for end, caption in [(0, ""), *pages.PARTS]:
        inside = [c for c in chapters if start < c.floor.number <= end]
        found = [_entry(c) for c in inside if c.floor.is_spine]
        lines += ["", f"**{caption}**", ""] if found and caption else []
        lines, start = [*lines, *found], end
    return "\n".join(lines)


def _entry(chapter: Chapter) -> str:
    link = f"[{chapter.title}](chapters/{chapter.name}.ipynb)"
    tasks = len(exercises(chapter))
    more = f", {tasks} exercises" if tasks else ""
    asks = f" *{chapter.question}*" if chapter.question else ""
    return f"- {link}.{asks} ({minutes(chapter)} minutes{more})"


def buttons() -> str:
    """Three ways in."""
    return "\n".join([
        "::::{div} front-buttons",
        ":::{button-ref} chapters/00_prologue\n:color: primary\n\nRead the book\n:::",
        f":::{{button-link}} {colab(FIRST)}\n:color: primary\n:outline:\n\n"
        "Run it on Colab\n:::",
        ":::{button-ref} install\n:ref-type: ref\n:color: primary\n:outline:\n\n"
        "pip install\n:::",
        "::::",
    ])  # fmt: skip


def page() -> str:
    """The text of index.md."""
    record = json.loads(pages.RECORD.read_text(encoding="utf-8"))
    chapters, about = read_chapters(), record["versions"]
    parts = {
        "buttons": buttons(),
        "ride": _shown(picture()),
        "counts": numbers(chapters),
        "speed": speed(record),
        "suites": suites_chart(),
        "contents": contents(chapters),
    }
    slots = {"jax": about["jax"], "date": about["date"]}
    slots["suites"] = suites.said_of_all(suites.rows())
    slots["requirement"] = f"minijax-book @ git+{address()}@{owner.reference()}"
    text = TEMPLATE.read_text(encoding="utf-8").format(**slots)
    return re.sub(r"<!-- (\w+) -->", lambda match: parts[match[1]], text)


def favicon() -> str:
    """The lift by itself, with the function in it."""
    canvas = Canvas()
    canvas.rect(0, 0, 32, 32, "tangent", None, 6)
    canvas.text(16, 24, "ƒ", 24, "paper", "middle", bold=True)
    return canvas.figure(32, 32, "minijax", "").svg


def card() -> str:
    """The preview of a link: name, sentence, and the ride."""
    (width, height), canvas, ridden = CARD, Canvas(), picture()
    canvas.text(70, 210, "minijax", 84, bold=True)
    canvas.text(72, 290, "JAX, built from nothing", 40)
    canvas.text(72, 340, "a book of notebooks, and the package", 26, "muted")
    canvas.text(72, 376, "that comes out of it", 26, "muted")
    frame = canvas.figure(width, height, "minijax", "").svg
    scale = (height - 60) / ridden.height
    left = width - ridden.width * scale - 50
    moved = f'<g transform="translate({left:.0f} 30) scale({scale:.3f})">'
    dark = re.compile(r"<style>.*?</style>", re.DOTALL)
    inside = ridden.svg.replace("max-width:100%;height:auto;", "")
    return dark.sub("", frame.replace("</svg>", f"{moved}{inside}</g></svg>"))


def _shown(figure: Figure) -> str:
    return f'<div class="mjf-wrap">{figure.svg}</div>'


def main() -> None:
    """Write them, if their text changed."""
    made = {"index.md": page(), PICTURE: picture().svg, FAVICON: favicon()}
    for path, text in made.items():
        if files.write(ROOT / path, text):
            print(f"wrote {path}")


if __name__ == "__main__":
    main()
