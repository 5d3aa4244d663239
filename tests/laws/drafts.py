"""Chapters written for one test."""

from book.tools.source import floor, read_chapter

INIT = '#| export __init__\n"""A package."""'


def draft(folder, number, *cells, home=None):
    """A chapter with these code cells.

    A cell may be a pair `(text, tags)` or a triple with its title; the text of a cell
    that begins with `> ` is prose. `home` is the folder of the floor.
    """
    wanted = floor(str(number))
    if home is None and wanted.number > 1:
        home = f"floor{wanted.number}"
    lines = ["---", f"floor: {home}", "---"] if home else []
    lines += [f"# {number} · A title", ""]
    for cell in cells:
        lines += _written(*((cell,) if isinstance(cell, str) else cell))
    path = folder / f"{wanted.number:02d}_floor{number}.md"
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_chapter(path)


def _written(text, tags="", title=""):
    if text.startswith("> "):
        return [text[2:], ""]
    options = [f":tags: [{tags}]"] if tags else []
    options += [f":title: {title}"] if title else []
    return ["```{code-cell} ipython3", *options, "", text, "```", ""]
