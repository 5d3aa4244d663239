"""The page of measurements beside JAX, from the recorded run of `make bench`."""

import html

from book.helper.ratios import ratios

NOBODY = "–"


def speed_page(record: dict) -> str:
    """The page: what was measured when and where, a picture, and the table."""
    about, rows = record["versions"], record["rows"]
    known = {name: row for name, row in rows.items() if row and "ratio" in row}
    dots = [(name, row["ratio"]["jax"], row["must"]) for name, row in known.items()]
    picture = ratios(dots, title="Our time divided by that of jax.jit")
    behind = [name for name, ratio, must in dots if ratio > must]
    lines = ["# Beside JAX", "", _TEXT.format(**about), ""]
    lines += [f"<div>{picture.svg}</div>", ""]
    lines += [_BEHIND.format(names=", ".join(behind)) if behind else _KEPT, ""]
    lines += [_HEAD, f"|---|{'---:|' * 7}"]
    lines += [_line(name, row) for name, row in known.items()]
    lines += [f"| {name} | not there yet: {row} |  |  |  |  |  |  |"
              for name, row in rows.items() if isinstance(row, str)]  # fmt: skip
    return "\n".join(lines) + "\n"


def _line(name: str, row: dict) -> str:
    times = [f"{row['us'][who]:,.1f}" for who in ("minijax", "jax")]
    low, high = row["quartiles"]["jax"]
    ratio = f"{row['ratio']['jax']:.2f} ({low:.2f}–{high:.2f})"
    others = [row["ratio"].get(who) for who in ("numpy", "numba")]
    cells = [f"{x:.2f}" if x else NOBODY for x in others]
    cells = [*times, ratio, f"{row['must']:g}", f"{row['goal']:g}", *cells]
    return f"| {html.escape(name)} | {' | '.join(cells)} |"


_HEAD = "| program | minijax, µs | JAX, µs | ratio | must | goal | / NumPy | / Numba |"
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
