"""Of a test with many cases each commit meets a share, and three turns meet all."""

from types import SimpleNamespace

from tests.shares_of_cases import MANY, by_turns, commit

FEW = {f"tests/test_a.py::test_few[{k}]" for k in range(MANY - 1)}
LAWS = {f"tests/laws/test_b.py::test_pages[{k}]" for k in range(40)}
SEVERAL = {f"tests/test_a.py::test_many[{k}]" for k in range(40)}


def met(monkeypatch, turns, turn=None):
    """The names of the tests that a turn meets."""
    monkeypatch.setenv("MINIJAX_TEST_TURNS", str(turns))
    monkeypatch.delenv("MINIJAX_TEST_TURN", raising=False)
    if turn is not None:
        monkeypatch.setenv("MINIJAX_TEST_TURN", str(turn))
    items = [SimpleNamespace(nodeid=name) for name in sorted(FEW | LAWS | SEVERAL)]
    return {item.nodeid for item in by_turns(items)}


def test_three_turns_meet_all_and_no_two_the_same(monkeypatch):
    shares = [met(monkeypatch, 3, turn) for turn in range(3)]
    assert all(share >= FEW | LAWS for share in shares)
    counts = [len(share & SEVERAL) for share in shares]
    assert set.union(*shares) >= SEVERAL and sum(counts) == 40 and min(counts) == 13


def test_all_are_met_where_nobody_asks_for_turns(monkeypatch):
    assert met(monkeypatch, 1) == FEW | LAWS | SEVERAL


def test_a_commit_has_its_turn(monkeypatch):
    assert met(monkeypatch, 3) == met(monkeypatch, 3, commit() % 3)
