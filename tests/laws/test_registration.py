"""A floor that replaces what another floor made has imported it: the order is fixed."""

import ast
from collections import defaultdict
from functools import cache

from book.tools.source import PACKAGE, ROOT

# Attributes of a class that another module sets, with the reason.
PATCHED = {
    ("minijax.sharding.manual_axes", "AbstractValue.sharding"): (
        "Abstract values have it before there are meshes; the slot is in that module."
    ),
}


@cache
def trees():
    """The modules of the package by their dotted names."""
    paths = sorted((ROOT / PACKAGE).rglob("*.py"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    names = [name.removesuffix(".__init__") for name in names]
    return {name: ast.parse(path.read_text()) for name, path in zip(names, paths)}


@cache
def imported(module):
    """What a module imports: from its own name to the module and the name there."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in trees()[module].body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE)
        for alias in node.names
    }


@cache
def needed(module):
    """All modules that have been imported when a module begins to run its own lines."""
    found = set()
    for there, name in imported(module).values():
        for each in (there, f"{there}.{name}"):
            if each in trees() and each != module and each not in found:
                found |= {each} | needed(each)
    return found


def statements(body):
    """Yield the statements that run when a module is imported."""
    for node in body:
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node
            for field in ("body", "orelse", "finalbody"):
                yield from statements(getattr(node, field, []))


def set_from_outside():
    """Yield modules, objects of other modules, and attributes that they set there."""
    for module, tree in trees().items():
        for node in statements(tree.body):
            for target in getattr(node, "targets", []):
                for each in ast.walk(target):
                    stored = isinstance(getattr(each, "ctx", None), ast.Store)
                    if not (stored and isinstance(each, ast.Attribute)):
                        continue
                    name = getattr(each.value, "id", None)
                    if name in imported(module):
                        yield module, imported(module)[name], each.attr


@cache
def slots():
    """Each slot, and the modules that put something into it."""
    found = defaultdict(set)
    for module, slot, attribute in set_from_outside():
        if attribute == "value":
            found[slot].add(module)
    return found


def test_there_are_slots():
    assert len(slots()) > 20


def test_who_fills_a_slot_later_imports_who_was_earlier():
    for slot in slots().values():  # parsed while it runs: collecting takes no time
        fillers = sorted(slot, key=lambda name: len(needed(name)))
        for earlier, later in zip(fillers, fillers[1:]):
            assert earlier in needed(later), f"{earlier} or {later}: the last one wins"


def test_no_class_of_another_module_is_patched():
    patched = {
        (module, f"{name}.{attribute}")
        for module, (_, name), attribute in set_from_outside()
        if attribute != "value"
    }
    assert patched == set(PATCHED)
