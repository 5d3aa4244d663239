"""Make the page of compatibility: every public name of JAX, and whether it is here.

python -m book.tools.compatibility    print how many names of each module are here

JAX's names and their parameters are recorded in `tests/data/public_names.json`, which
`make oracle-record` writes; ours are looked up. What differs is read from parameters,
and from the sentences of `book/differences.md` in which a name stands.
"""

import importlib
import re
import warnings
from functools import cache
from typing import NamedTuple

from book.tools.source import PACKAGE, ROOT

PAGE = "book/compatibility.md"
HEAD = """# Compatibility, name by name

Every public name of JAX {version}, by module: those that are here, those of them that
differ, and those that are missing. The page is made by looking for the names: the list
of JAX's is recorded by `make oracle-record`, and a test holds that each missing name
has its reason. {here} of {all} names are here. Asking for a missing one is an
`AttributeError` that names the one most like it.

*Differs* quotes the sentence of [Differences from JAX](differences.md) that mentions
the name, or lists parameters that JAX takes and that are not taken here.

| module | here | of | differ |
|---|---|---|---|
"""


class Entry(NamedTuple):
    """A public name of JAX: whether it is here, and in which way it is different."""

    name: str
    here: bool
    how: tuple


@cache
def public_names():
    """The module that knows which names are public."""
    return importlib.import_module("tests.public_names")


def missing(path: str, name: str) -> str:
    """The sentence of an AttributeError about a name that is not here."""
    if public_names().found_in(PACKAGE, path) is None:
        path, _, name = path.rpartition(".")
    space = f"{PACKAGE}.{path}".rstrip(".")
    words = importlib.import_module(f"{PACKAGE}._lazy").why_missing(space, name)
    return words.partition(" is not here: ")[2]


def entry(path: str, name: str, parameters: list | None) -> Entry:
    """What there is to say of one name."""
    module, absent = public_names().found_in(PACKAGE, path), object()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = getattr(module, name, absent)
    if module is None or ours is absent:
        why = missing(path, name)
        return Entry(name, False, (why,) if why else ())
    given = public_names().parameters(ours)
    lacking = [p for p in parameters or [] if given and p not in given and "*" not in p]
    if any(each.startswith("**") for each in given or []):
        lacking = []
    how = [f"without `{', '.join(lacking)}`"] if lacking else []
    return Entry(name, True, (*how, *sentences().get((path, name), ())))


@cache
def sentences() -> dict[tuple[str, str], list[str]]:
    """For a name of a module, the sentences about it in the page of differences."""
    text = (ROOT / "book" / "differences.md").read_text(encoding="utf-8")
    found: dict[tuple[str, str], list[str]] = {}
    for item in re.findall(r"^- (.*)$", text, re.MULTILINE):
        for key, sentence in _mentions(item):
            found.setdefault(key, [])
            if sentence not in found[key]:
                found[key].append(sentence)
    return found


def _mentions(item):
    spaces = {"jnp": "numpy", "j": ""}
    for sentence in re.split(r"(?<=[.:]) (?=[A-Z`])", item):
        for quoted in re.findall(r"`([^`]+)`", sentence):
            dotted = re.match(r"(?:(?:mini)?jax\.)?([\w.]+)", quoted)
            path, _, name = (dotted[1] if dotted else "").rpartition(".")
            space = spaces.get(path, path)
            for known in _spaces_of(name):
                if known == space or (not path and name not in ("sum", "mean", "max")):
                    yield (known, name), sentence


@cache
def _spaces_of(name):
    names = public_names().recorded()["names"]
    return [path for path, found in names.items() if name in found]


def section(path: str, names: dict) -> tuple[str, list[Entry]]:
    """The text about one module, and its entries."""
    entries = [entry(path, name, names[name]) for name in sorted(names, key=str.lower)]
    lines = [f"## `{'.'.join(filter(None, ['jax', path]))}`", ""]
    alike = [f"`{each.name}`" for each in entries if each.here and not each.how]
    lines += [f"As in JAX: {', '.join(alike)}.", ""] if alike else []
    unlike = [each for each in entries if each.how and each.here]
    if unlike:
        lines += ["| differs | how |", "|---|---|"]
        rows = [(each.name, " ".join(each.how).replace("|", "\\|")) for each in unlike]
        lines += [*(f"| `{name}` | {how} |" for name, how in rows), ""]
    reasons: dict[str, list[str]] = {}
    for each in entries:
        if not each.here:
            reasons.setdefault(" ".join(each.how), []).append(f"`{each.name}`")
    for why, absent in reasons.items():
        lines += [f"Not here: {', '.join(absent)}{': ' + why if why else '.'}", ""]
    return "\n".join(lines), entries


def page() -> str:
    """The text of the page."""
    record = public_names().recorded()
    parts = {path: section(path, names) for path, names in record["names"].items()}
    rows, entries = [], []
    for path, (_, found) in parts.items():
        here = [each for each in found if each.here]
        name = ".".join(filter(None, ["jax", path]))
        differ = sum(bool(each.how) for each in here)
        rows += [f"| `{name}` | {len(here)} | {len(found)} | {differ} |"]
        entries += found
    numbers = {"here": sum(each.here for each in entries), "all": len(entries)}
    head = HEAD.format(version=record["version"], **numbers)
    texts = [text for text, _ in parts.values()]
    return "\n".join([head + "\n".join(rows), "", *texts])


def main() -> None:
    """Print the counts."""
    print(page().partition("\n## ")[0].partition("|---|---|---|---|\n")[2])


if __name__ == "__main__":
    main()
