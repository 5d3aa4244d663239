"""Make the picture that previews of a link show: `book/_static/card.png`.

python -m book.tools.card CHROMIUM    draw it with this browser

The picture is made of `landing.card`, and keeps the hash of that text, by which a law
finds a stale one.
"""

import hashlib
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

from book.tools import landing
from book.tools.source import ROOT

PICTURE = ROOT / "book" / "_static" / "card.png"
KEY = b"Source\0"  # of the hash, among the texts of a PNG
START = 33  # behind the signature and the first chunk


def digest(svg: str) -> str:
    """What tells whether a picture was made of this text."""
    return hashlib.sha256(svg.encode()).hexdigest()


def stored(png: bytes) -> str:
    """The hash that a picture keeps; empty if there is none."""
    at = png.find(KEY)
    return png[at + len(KEY) :][:64].decode() if at >= 0 else ""


def label(png: bytes, svg: str) -> bytes:
    """The picture, with the hash of the text that it was made of."""
    body = b"tEXt" + KEY + digest(svg).encode()
    chunk = (
        struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    )
    return png[:START] + chunk + png[START:]


def draw(svg: str, browser: str) -> bytes:
    """The picture as PNG."""
    width, height = landing.CARD
    with tempfile.TemporaryDirectory() as folder:
        page, picture = Path(folder, "card.html"), Path(folder, "card.png")
        page.write_text(f"<style>body {{ margin: 0 }}</style>{svg}", encoding="utf-8")
        flags = "--headless=new --no-sandbox --disable-gpu --hide-scrollbars".split()
        flags += [f"--window-size={width},{height}", f"--screenshot={picture}"]
        command = [browser, *flags, page.as_uri()]
        subprocess.run(command, check=True, capture_output=True)
        return picture.read_bytes()


if __name__ == "__main__":
    text = landing.card()
    PICTURE.write_bytes(label(draw(text, sys.argv[1]), text))
    print(f"wrote {PICTURE.relative_to(ROOT)}")
