"""Make the page of errors, by running one test for each: message, cause, cure.

python -m book.tools.mistakes    write book/errors.md

The messages of the package are those of this run; JAX's are recorded in
`tests/data/mistakes.json`, which `make oracle-record` writes.
"""

import importlib
import json
import re

from book.tools import files
from book.tools.source import PACKAGE, ROOT

PAGE = "book/errors.md"
RECORD = ROOT / "tests" / "data" / "mistakes.json"
HEAD = (
    "# Errors, one by one\n\nClassic mistakes, each with the message that it gets here "
    "and the one of JAX {version}, why it is raised, and what to do. The page is made "
    "by running them: `python -m book.tools.mistakes`. How the lines below a message "
    "come about is the subject of [chapter 8](../chapters/08_errors.ipynb).\n"
)


def entry(title, mistake, ours, theirs) -> str:
    """The section about one mistake."""
    mistakes = importlib.import_module("tests.mistakes")
    code = mistakes.source(mistake.run).replace("j.numpy.", "jnp.")
    code = re.sub(r"\bj\.", "jax.", code).replace("  # noqa: E731", "")
    return "\n".join([
        f"## {title}\n\n```python\n{code}\n```\n",
        f"*Here:*\n\n```text\n{': '.join(ours)}\n```\n",
        f"*In JAX:*\n\n```text\n{': '.join(theirs)}\n```\n",
        f"**Cause.** {mistake.cause} **Cure.** {mistake.cure}\n",
    ])  # fmt: skip


def page() -> str:
    """The text of the page."""
    mistakes = importlib.import_module("tests.mistakes")
    package, record = importlib.import_module(PACKAGE), json.loads(RECORD.read_text())
    parts = [HEAD.format(version=record["version"])]
    for title, mistake in mistakes.MISTAKES.items():
        ours = mistakes.message(package, mistake.run)
        parts.append(entry(title, mistake, ours, record["messages"][title]))
    return "\n".join(parts)


def main() -> None:
    """Write the page, if its text changed."""
    if files.write(ROOT / PAGE, page()):
        print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
