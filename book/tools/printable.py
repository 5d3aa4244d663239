"""Bind all pages of the built book into one, to print it or to read it offline.

python -m book.tools.printable                  write _build/html/printable.html
python -m book.tools.printable --pdf CHROMIUM   and printable.pdf, with this browser
    --folds closed|solutions|all                which closed cells the PDF has open

The pages stand in the order of `_toc.yml`. Their links lead to places in this one page,
figures are part of it, and nothing of it needs a script or another file. An anchor gets
the name of its page in front, since several pages have a section of the same name.
"""

import argparse
import base64
import mimetypes
import posixpath
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from html import escape, unescape
from pathlib import Path
from typing import NamedTuple

from book.tools.folds import SOLUTION
from book.tools.source import ROOT, BookError

HTML = ROOT / "_build" / "html"
NAME = "printable"
SHEETS = ("pygments.css", "figures.css", "book.css")  # of the pages, in _static
OWN_SHEET = ROOT / "book" / "web" / "printable.css"
FOLDS = {
    "closed": "leave closed cells closed",
    "solutions": "open the solutions of exercises",
    "all": "open all closed cells",
}
SECONDS = 900  # for a browser to print

_TAG = re.compile(r"<[a-zA-Z](?:[^>\"']|\"[^\"]*\"|'[^']*')*>")
_ATTRIBUTE = re.compile(
    r' (id|href|xlink:href|src|for|aria-labelledby|aria-describedby)="([^"]*)"'
)
_REFERENCE = re.compile(r"url\(#([^)]*)\)")
_DARK_STYLE = re.compile(r"<style>@media \(prefers-color-scheme:dark\).*?</style>")
_SCREEN_ONLY = re.compile(
    r'<script.*?</script>|<a class="headerlink".*?</a>|<p hidden>.*?</p>'
    r'|<div class="front-buttons.*?</div>|<div class="toctree-wrapper.*?</div>'
    r"|<span></span>",
    re.DOTALL,
)
_PLAIN = re.compile(r'<span class="(?:n|p|w)">((?:[^<]|<a [^>]*>[^<]*</a>)*)</span>')
_FONT = re.compile(r'url\("(fonts/[^"]+)"\)')
_HEADING = re.compile(r"(</?h)([1-5])\b")
_FOLD = re.compile(
    r'<details class="([^"]*)">\s*<summary[^>]*>\s*'
    r'<p class="collapsed admonition-title">(.*?)</p>.*?</summary>',
    re.DOTALL,
)
_TITLE = re.compile(r"<h1[^>]*>(.*?)</h1>", re.DOTALL)


class Part(NamedTuple):
    """A part of the contents: its caption, and its pages."""

    caption: str
    pages: list[str]


def parts(contents: str) -> list[Part]:
    """The parts that a text of `_toc.yml` lists; the first has the root alone."""
    found = []
    for kind, value in re.findall(r"(root|caption|file): (.*)", contents):
        if kind != "file":
            found.append(Part(value if kind == "caption" else "", []))
        if kind != "caption":
            found[-1].pages.append(value)
    return found


class Binder:
    """Pages of a built book, as sections of one page.

    Args:
      site: the folder of the built book.
      pages: names of pages without suffix, in order.
      address: where the book is published; links to other files of it lead there.
    """

    def __init__(self, site: Path, pages: list[str], address: str = ""):
        self.site, self.address = site, address
        self.texts = {page: article(_read(site, page)) for page in pages}
        self.anchors = {page: _anchors(text) for page, text in self.texts.items()}

    def section(self, page: str) -> str:
        """One page as a section: headings a level lower, anchors and links renamed."""
        seen: set[str] = set()

        def tag(match: re.Match[str]) -> str:
            change = self._changer(page, seen)
            text = _ATTRIBUTE.sub(change, match[0])
            return _REFERENCE.sub(rf"url(#{_prefix(page)}--\1)", text)

        text = _HEADING.sub(lambda m: f"{m[1]}{int(m[2]) + 1}", self.texts[page])
        body = _TAG.sub(tag, text)
        return f'<article class="bd-article" id="{_prefix(page)}">{body}</article>\n'

    def title(self, page: str) -> str:
        """The title of a page, as text."""
        match = _TITLE.search(self.texts[page])
        return unescape(re.sub(r"<[^>]*>", "", match[1])).strip() if match else page

    def _changer(self, page: str, seen: set[str]) -> Callable[[re.Match[str]], str]:
        """What a page's attributes with names in them become."""

        def change(match: re.Match[str]) -> str:
            name, value = match[1], match[2]
            if name == "id":  # the same figure may be drawn twice
                kept = value not in seen
                seen.add(value)
                return f' id="{_prefix(page)}--{value}"' if kept else ""
            if name in ("href", "xlink:href", "src"):
                return f' {name}="{escape(self._lead(page, unescape(value)))}"'
            names = [f"{_prefix(page)}--{each}" for each in value.split()]
            return f' {name}="{" ".join(names)}"'

        return change

    def _lead(self, page: str, target: str) -> str:
        """Where a link of a page leads in the one page."""
        if re.match(r"[a-z]+:", target):
            return target
        path, _, anchor = target.partition("#")
        folder = posixpath.dirname(page)
        file = posixpath.normpath(posixpath.join(folder, path)) if path else ""
        other = file.removesuffix(".html") if file else page
        if other in self.texts:
            known = anchor in self.anchors[other]
            return f"#{_prefix(other)}--{anchor}" if known else f"#{_prefix(other)}"
        place, (kind, _) = self.site / file, mimetypes.guess_type(file)
        if kind and kind.startswith("image/") and place.exists():
            coded = base64.b64encode(place.read_bytes()).decode()
            return f"data:{kind};base64,{coded}"
        return self.address + file + (f"#{anchor}" if anchor else "")


def article(html: str) -> str:
    """The text of a built page, without what only a screen or a script has use for."""
    start = html.index("<article")
    text = html[html.index(">", start) + 1 : html.index("</article>", start)]
    text = _DARK_STYLE.sub("", _SCREEN_ONLY.sub("", text))
    return _FOLD.sub(_fold, _PLAIN.sub(r"\1", text))


def style(site: Path) -> str:
    """The style sheets of the pages without the dark theme's rules, and our own."""
    texts = [(site / "_static" / name) for name in SHEETS]
    found = [path.read_text(encoding="utf-8") for path in texts if path.exists()]
    rules = re.sub(r"/\*.*?\*/", "", "\n".join(found), flags=re.DOTALL)
    rules = _FONT.sub(lambda match: _font(site, match[1]), rules)
    light = re.sub(r'html\[data-theme="dark"\][^{}]*\{[^{}]*\}', "", rules)
    return light + OWN_SHEET.read_text(encoding="utf-8")


def _font(site: Path, name: str) -> str:
    """A font as part of the page, which is read from any folder."""
    coded = base64.b64encode((site / "_static" / name).read_bytes()).decode()
    return f'url("data:font/woff2;base64,{coded}")'


def bind(site: Path, contents: str, folds: str = "closed", address: str = "") -> str:
    """All pages of a built book as one page of HTML.

    Args:
      site: the folder of the built book.
      contents: the text of `_toc.yml`.
      folds: which closed cells are open at first, a key of `FOLDS`; a reader can
        choose again at the top of the page.
      address: where the book is published.
    """
    listed = parts(contents)
    binder = Binder(site, [page for part in listed for page in part.pages], address)
    head = (
        '<!DOCTYPE html>\n<html lang="en" data-theme="light">\n<head>\n'
        '<meta charset="utf-8"/>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>\n'
        f"<title>minijax, the whole book</title>\n<style>\n{style(site)}</style>\n"
        f"</head>\n<body>\n{_choice(folds)}"
    )
    return (
        head + "".join(_bound(binder, part) for part in listed) + "</body>\n</html>\n"
    )


def print_pdf(text: str, pdf: Path, browser: str) -> None:
    """Print a page of HTML with a browser, chromium or its kin."""
    flags = (
        "--headless=new --no-sandbox --disable-gpu --no-pdf-header-footer "
        f"--generate-pdf-document-outline --timeout={1000 * SECONDS}"
    ).split()
    pdf.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, f"{NAME}.html")
        page.write_text(text, encoding="utf-8")
        flags += [f"--user-data-dir={folder}", f"--print-to-pdf={pdf}"]
        command = [browser, *flags, page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
    if not pdf.exists():  # it says so, and exits as if all were well
        raise BookError(f"{browser} has not printed {pdf.name}")


def main(arguments: list[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folds", choices=FOLDS, default="solutions")
    parser.add_argument("--pdf", metavar="BROWSER", help="print it with this browser")
    options = parser.parse_args(arguments)
    contents = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    page = HTML / f"{NAME}.html"
    page.write_text(bind(HTML, contents, address=published()), encoding="utf-8")
    _say(page)
    if options.pdf:
        pdf = page.with_suffix(".pdf")
        text = bind(HTML, contents, options.folds, published())
        print_pdf(text, pdf, options.pdf)
        _say(pdf)
    return 0


def published() -> str:
    """Where the book is published, from `_config.yml`."""
    text = (ROOT / "_config.yml").read_text(encoding="utf-8")
    match = re.search(r"html_baseurl: (\S+)", text)
    return match[1] if match else ""


def _bound(binder: Binder, part: Part) -> str:
    """A part of the book: its sheet with the titles, then its pages."""
    opening = ""
    if part.caption:
        titles = [
            f'<li><a href="#{_prefix(page)}">{escape(binder.title(page))}</a></li>'
            for page in part.pages
        ]
        opening = (
            f'<nav class="part"><h1>{escape(part.caption)}</h1>\n'
            f"<ol>\n{''.join(titles)}</ol></nav>\n"
        )
    return opening + "".join(binder.section(page) for page in part.pages)


def _choice(folds: str) -> str:
    """The question about closed cells, which style sheets answer without a script."""
    lines = [
        f'<label><input type="radio" name="folds" id="folds-{key}"'
        f"{' checked' if key == folds else ''}/> {text}</label>"
        for key, text in FOLDS.items()
    ]
    return f'<form class="folds"><b>On paper:</b> {" ".join(lines)}</form>\n'


def _fold(match: re.Match[str]) -> str:
    """A closed cell: its title once, and a class for solutions."""
    kind = " solution" if match[2].startswith(SOLUTION) else ""
    return f'<details class="{match[1]}{kind}"><summary>{match[2]}</summary>'


def _anchors(text: str) -> set[str]:
    tags = "".join(_TAG.findall(text))
    return {value for name, value in _ATTRIBUTE.findall(tags) if name == "id"}


def _prefix(page: str) -> str:
    return page.replace("/", "-")


def _read(site: Path, page: str) -> str:
    path = site / f"{page}.html"
    if not path.exists():
        raise BookError(f"{page} is not built: run `make book`")
    return path.read_text(encoding="utf-8")


def _say(path: Path) -> None:
    size = path.stat().st_size / 1e6
    print(f"wrote {path.relative_to(ROOT)} ({size:.0f} MB)")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BookError as error:
        sys.exit(f"printable: {error}")
