"""Clocks: the least of many short batches, and where and when it was measured."""

import re
import time

from minijax_book import clock


def test_a_call_takes_what_it_takes():
    assert 900 < clock.microseconds(time.sleep, 0.001) < 20_000


def test_short_calls_are_timed_in_batches():
    calls = []
    assert 0 < clock.microseconds(calls.append, 1) < 5
    assert len(calls) > 200 * 10


def test_long_calls_do_not_try_patience(monkeypatch):
    monkeypatch.setattr(clock, "PATIENCE", 0)
    calls = []
    clock.microseconds(lambda: calls.append(time.sleep(0.01)))
    assert len(calls) == 1 + 1 + 3


def test_place_names_processor_and_day():
    assert re.fullmatch(r"\(.+, \d{1,2} [A-Z][a-z]+ 20\d\d\)", clock.place())


def test_a_claim_that_is_not_true_here_is_said_with_its_line(capsys):
    clock.expect(2 > 1)
    assert capsys.readouterr().out == ""
    clock.expect(1 > 2, "this row")
    line = 'clock.expect(1 > 2, "this row")'
    assert capsys.readouterr().out == f"{clock.OTHERWISE}: this row {line}\n"
