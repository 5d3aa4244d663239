"""Find names in backticks that no code of the repository has.

What a page says of the real JAX, in *In JAX*, in further reading, lists and notes, is
about names of others. Everywhere else a name in backticks is one of ours, of Python's,
or of the few in `FOREIGN`.
"""

import builtins
import re
from collections.abc import Iterator
from functools import cache

from book.tools.source import PACKAGE, ROOT, Chapter, read_chapters

FOREIGN = frozenset(
    """
    BKGTS BSKH BTKGH CUBLAS_COMPUTE_32F_FAST_TF32 METH_FASTCALL RawModule addopts
    SmallWhileLoopHoistingPass STORE_FAST carrypartial0 ffast geev loops_hyperbolic
    main_0 partial0 post_mortem s_tanhf sin_float32_rare vaddps vaddss vbroadcastss
    """.split()
)
OTHERS = {"In JAX", "Further reading"}
FOLDERS = PACKAGE, "tests", "book", "benchmarks"
LAWS = ROOT / "tests" / "laws"  # their drafts quote names that are not there
SHORT = 4  # shorter ones are letters of formulas, registers, fields of formats

_QUOTED = re.compile(r"`([^`\n]+)`")
_NAME = re.compile(r"[A-Za-z_]\w*")


def strange_names(chapter: Chapter) -> Iterator[str]:
    """Names that a page quotes as its own and that are nowhere, with their places."""
    section = ""
    for number, line in chapter.prose:
        if line.startswith("#"):
            section = line.lstrip("# ")
        if section in OTHERS or line.startswith(("> ", "- ")):
            continue
        for quoted in _QUOTED.findall(line):
            for name in _NAME.findall(quoted):
                if len(name) > SHORT and name not in known():
                    yield (
                        f"chapters/{chapter.name}.md:{number}: `{name}` is in no code; "
                        "a name of others belongs to FOREIGN of book/tools/quoted.py"
                    )


@cache
def known() -> frozenset[str]:
    """All names in the code of the repository and of its chapters."""
    folders = [ROOT / folder for folder in FOLDERS]
    paths = [path for top in folders for path in top.rglob("*.py")]
    texts = [path.read_text("utf-8") for path in paths if path.parent != LAWS]
    texts += [cell.text for chapter in read_chapters() for cell in chapter.cells]
    found = set(_NAME.findall("\n".join(texts)))
    return FOREIGN.union(found, dir(builtins))
