"""Which names of JAX packages ask for, read from their sources without running them.

    python -m tests.conformance.names FOLDER            # how many each package asks for
    python -m tests.conformance.names FOLDER --missing  # those that are not here
    python -m tests.conformance.names FOLDER --private  # those that JAX calls private

FOLDER holds the packages, as in `site-packages`.
"""

import argparse
import ast
import importlib
import warnings
from collections import defaultdict
from pathlib import Path

ROOTS = "jax", "jaxlib"


class Names(ast.NodeVisitor):
    """Collects dotted names that begin with an import of JAX."""

    def __init__(self):
        self.known, self.found = {}, {}

    def visit_Import(self, node):
        for alias in node.names:
            if (root := alias.name.partition(".")[0]) in ROOTS:
                self.found.setdefault(alias.name, node.lineno)
                self.known[alias.asname or root] = alias.name if alias.asname else root

    def visit_ImportFrom(self, node):
        module = node.module or ""
        if node.level or module.partition(".")[0] not in ROOTS:
            return
        for alias in node.names:
            name = f"{module}.{alias.name}"
            self.found.setdefault(name, node.lineno)
            self.known[alias.asname or alias.name] = name

    def visit_Attribute(self, node):
        parts, value = [], node
        while isinstance(value, ast.Attribute):
            parts.append(value.attr)
            value = value.value
        if isinstance(value, ast.Name) and value.id in self.known:
            name = ".".join([self.known[value.id], *reversed(parts)])
            self.found.setdefault(name, node.lineno)
        self.generic_visit(node)


def names_in(file):
    """Return the names that a file asks for, each with a line; {} if it is wrong."""
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return {}
    names = Names()
    for node in ast.walk(tree):  # imports in functions serve the functions beside them
        if isinstance(node, ast.Import | ast.ImportFrom):
            names.visit(node)
    names.visit(tree)
    return names.found


def names_by_package(folder):
    """Return for each name the packages that ask for it, with a place in each."""
    asked = defaultdict(dict)
    for file in sorted(Path(folder).rglob("*.py")):
        where = file.relative_to(folder)
        for name, line in names_in(file).items():
            asked[name].setdefault(where.parts[0], f"{where}:{line}")
    return asked


def is_private(name):
    return "._src" in name or name.startswith("jaxlib")


def is_here(name):
    """Whether minijax has a name; of an object's attributes nothing is said."""
    place, value = "minijax", importlib.import_module("minijax")
    for part in name.split(".")[1:]:
        place = f"{place}.{part}"
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(place)
            except ImportError:
                return False
        if not isinstance(value, type(ast)):
            return True
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--private", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    asked = names_by_package(options.folder)
    if not (options.missing or options.private):
        counts = defaultdict(int)
        for name, users in asked.items():
            for user in users if not is_private(name) else ():
                counts[user] += 1
        for user, count in sorted(counts.items(), key=lambda item: item[1]):
            print(f"{count:4} {user}")
        return
    for name, users in sorted(asked.items(), key=lambda item: -len(item[1])):
        private = is_private(name)
        if private if options.private else not private and not is_here(name):
            print(f"{name}  {' '.join(users)}  {next(iter(users.values()))}")


if __name__ == "__main__":
    main()
