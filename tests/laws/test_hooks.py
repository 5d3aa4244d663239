"""Every hook is on the page of hooks, with a sentence; and the search finds them."""

import sys
from types import SimpleNamespace

import pytest

from book.tools import hooks
from book.tools.source import PACKAGE
from tests.laws.test_registration import slots

MOST_VALUES = 34  # hooks of which the latest counts: where an amendment can, it does


def test_the_search_finds_all_kinds():
    found = hooks.found()
    assert {hook.kind for hook in found} == set(hooks.KINDS)
    names = {f"{hook.module}.{hook.name}" for hook in found}
    assert len(names) > 80
    assert {f"{PACKAGE}.core.impl_rules", f"{PACKAGE}.core.bind_listeners"} <= names
    assert {".".join(slot) for slot in slots()} <= names


def test_each_hook_has_a_sentence_beside_it():
    silent = [f"{h.module}.{h.name}" for h in hooks.found() if not h.sentence]
    assert not silent, "write a comment above it: what is in it, and when it is asked"


def test_all_hooks_are_on_the_page():
    page = hooks.page()
    for hook in hooks.found():
        module = hook.module.removeprefix(f"{PACKAGE}.")
        assert f"| `{hook.name}` of `{module}` | {hook.sentence} | [" in page


def test_values_are_few():
    values = [hook for hook in hooks.found() if hook.kind == "Hook"]
    assert len(values) <= MOST_VALUES


OPENS = "given: list = []\ntaken = {}\nown = {}\nown['x'] = 1\n"
FILLS = {
    "as it is imported": "from minijax_opens import given\ngiven.append(print)\n",
    "by a function": (
        "from minijax_opens import helper, taken\ntaken.setdefault('x', 1)\n"
    ),
}


@pytest.mark.parametrize("how", FILLS)
def test_the_search_sees_who_fills(how, tmp_path, monkeypatch):
    text = "def helper():\n    pass\n\n\n" + OPENS
    (tmp_path / "minijax_opens.py").write_text(text)
    (tmp_path / "minijax_fills.py").write_text(FILLS[how])
    monkeypatch.syspath_prepend(tmp_path)
    watch = hooks.Watch()
    names = "minijax_opens", "minijax_fills"
    try:
        watch.import_all([SimpleNamespace(dotted=name) for name in names])
    finally:
        for name in names:
            sys.modules.pop(name, None)
    found = {
        watch.places[key][1]: {*fillers} - {watch.places[key][0]}
        for key, fillers in watch.fillers.items()
        if watch.places[key][0] == "minijax_opens"
    }
    filled = {name for name, others in found.items() if others == {"minijax_fills"}}
    assert filled == ({"given"} if how == "as it is imported" else {"taken"})


def test_what_functions_fill_is_read():
    package = SimpleNamespace(owner=lambda source, name: SimpleNamespace(dotted=source))
    text = (
        "from minijax.a import one, two, three, four as five\n"
        "def f(): one['x'], y = 1, 2; two.value = 3; three.add(4); five[0][1] = 6\n"
        "def g(): own = {}; own['x'] = one['y'] == 1\n"
    )
    found = [*hooks.changes(text, package)]
    assert found == [("minijax.a", name) for name in ("one", "two", "four", "three")]
