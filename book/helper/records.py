"""Times beside JAX, from the recorded run of the benchmarks."""

import json
from pathlib import Path

from .charts import table

RECORD = Path(__file__).with_name("recorded.json")
HEAD = ("", "minijax, µs", "JAX, µs", "ratio", "middle half")


def recorded(*names):
    """A table of rows of the recorded run, with its date, machine and versions.

    `names` are beginnings of the names of rows. The ratios are medians, our time
    divided by JAX's, with the range in which the middle half of the samples lies.
    """
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    known = {k: row for k, row in record["rows"].items() if "ratio" in row}
    found = {name: [k for k in known if k.startswith(name)] for name in names}
    missing = [name for name, rows in found.items() if not rows]
    if missing:
        raise ValueError(f"nothing was recorded of {', '.join(missing)}")
    rows = dict.fromkeys(k for rows in found.values() for k in rows)
    caption = "Recorded on {date}, {processor}: minijax {minijax}, JAX {jax}"
    return table(
        [_line(name, known[name]) for name in rows],
        HEAD,
        caption.format(**record["versions"]),
    )


def _line(name, row):
    low, high = row["quartiles"]["jax"]
    ours, theirs = (_short(row["us"][who]) for who in ("minijax", "jax"))
    ratio = round(row["ratio"]["jax"], 2)
    return [name, ours, theirs, ratio, f"{low:.2f} – {high:.2f}"]


def _short(value):
    """A number with two digits that count, and all of those before the point."""
    return float(f"{value:.2g}") if value < 10 else round(value)
