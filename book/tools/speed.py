"""The page of measurements beside JAX, from the recorded run of `make bench`."""

import html

from book.helper.ratios import ratios

NOBODY = "–"
OTHERS = {
    "eager": "eager", "numpy": "NumPy", "numba": "Numba",
    "torch": "PyTorch", "torch.compile": "torch.compile",
}  # fmt: skip
PAPER = "Newton-CG, quadratic", "HMM fit", "Newton-CG, logistic"


def speed_page(record: dict) -> str:
    """The page: what was measured when and where, a picture, and the tables."""
    about, rows = record["versions"], record["rows"]
    known = {name: row for name, row in rows.items() if row and "ratio" in row}
    dots = [(name, row["ratio"]["jax"], row["must"]) for name, row in known.items()]
    picture = ratios(dots, title="Our time divided by that of jax.jit")
    behind = [name for name, ratio, must in dots if ratio > must]
    lines = ["# Beside JAX", "", _TEXT.format(**about), ""]
    lines += [f"<div>{picture.svg}</div>", ""]
    lines += [_BEHIND.format(names="; ".join(behind)) if behind else _KEPT, ""]
    late = {name: row for name, row in rows.items() if isinstance(row, str)}
    lines += _table(_HEAD, [
        *[_line(name, row) for name, row in known.items()],
        *[[f"{name} (not there yet: {row})", *[""] * 6] for name, row in late.items()],
    ])  # fmt: skip
    return "\n".join([*lines, *_paper(known), *_others(about, known)]) + "\n"


def _table(head: tuple, rows: list) -> list[str]:
    """The lines of a table in which only the first column is broken."""
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    lines += [f"| {' | '.join([html.escape(row[0]), *row[1:]])} |" for row in rows]
    return ['<div class="measured">', "", *lines, "", "</div>", ""]


def _line(name: str, row: dict) -> list[str]:
    each = [row["us"][who] for who in ("minijax", "jax")]
    times = [f"{time:,.0f}" if time >= 1000 else f"{time:.1f}" for time in each]
    low, high = row["quartiles"]["jax"]
    ratio = f"{row['ratio']['jax']:.2f}"
    bounds = f"{row['must']:g}", f"{row['goal']:g}"
    return [name, *times, ratio, f"{low:.2f}–{high:.2f}", *bounds]


def _paper(known: dict) -> list[str]:
    rows = [
        [
            name,
            *[f"{row['us'][who] / 1000:,.3f}" for who in ("eager", "minijax", "jax")],
            f"{1 / row['ratio']['eager']:,.0f}",
        ]
        for name, row in known.items()
        if name.startswith(PAPER) and "eager" in row["ratio"]
    ]
    if not rows:
        return []
    return ["## The three programs of the paper", "", _PAPER, "", *_table(_MS, rows)]


def _others(about: dict, known: dict) -> list[str]:
    ratios = {name: row["ratio"] for name, row in known.items()}
    there = [who for who in OTHERS if any(who in ratio for ratio in ratios.values())]
    rows = [
        [name, *[f"{ratio[who]:.2g}" if who in ratio else NOBODY for who in there]]
        for name, ratio in ratios.items()
        if any(who in ratio for who in there)
    ]
    if not rows:
        return []
    head = "program", *[f"/ {OTHERS[who]}" for who in there]
    versions = {"Numba": about.get("numba"), "PyTorch": about.get("torch")}
    named = ", ".join(f"{name} {what}" for name, what in versions.items() if what)
    text = _OTHERS.format(versions=named or "neither Numba nor PyTorch")
    return ["## Beside others", "", text, "", *_table(head, rows)]


_HEAD = "program", "minijax, µs", "JAX, µs", "ratio", "quartiles", "must", "goal"
_MS = "program", "eager, ms", "minijax, ms", "JAX, ms", "times faster than eager"
_TEXT = (
    "Recorded on {date}, on a processor named {processor}, in one process and on one "
    "core unless a row says otherwise: minijax {minijax}, JAX {jax}, NumPy {numpy}, "
    "Python {python}. Samples of the packages alternate, calls are included, and a "
    "ratio is the median of the samples' ratios, our time divided by the other's, with "
    "its quartiles. `make bench` measures anew. In the picture a dot is a ratio, and "
    "the stroke is what it must not exceed; left of 1 we are faster."
)
_BEHIND = "Not yet where they must be: {names}."
_KEPT = "All rows are where they must be."
_PAPER = (
    "The paper that introduced JAX (Frostig, Johnson and Leary, *Compiling machine "
    "learning programs via high-level tracing*, 2018) measured optimisers compiled as "
    "wholes beside the same programs run by Python. Here is our version of them: "
    "“eager” is minijax without `jit`, each operation by itself on NumPy, the loops "
    "Python's; the other columns are jitted. The sizes are ours."
)
_OTHERS = (
    "Ratios again, our time under `jit` divided by that of: the same program in "
    "minijax without `jit`, its loops written in Python (eager); the same program on "
    "NumPy's arrays; and the same work written for Numba and PyTorch as their users "
    "write it, in one thread, with the functions that they have for it ({versions}). "
    "Gradients are PyTorch's own; `torch.compile` is warm. A dash: not written, or not "
    "compiled in two minutes."
)
