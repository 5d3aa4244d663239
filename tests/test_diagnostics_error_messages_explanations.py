"""Classic mistakes: the report names the user's line, the argument and the remedy."""

import json
from pathlib import Path

import pytest

import minijax
from tests.mistakes import JAX_WORDS, MISTAKES, message, report

PAGE = Path(__file__).parents[1] / "book" / "errors.md"
TABLE = Path(__file__).parent / "data" / "mistakes.json"


@pytest.mark.parametrize("title", MISTAKES)
def test_report(title):
    mistake = MISTAKES[title]
    _, text = report(minijax, mistake.run)
    assert mistake.guilty in text, text
    assert not [word for word in mistake.says if word not in text], text


@pytest.mark.parametrize("title", MISTAKES)
def test_no_frame_of_the_package(title):
    _, text = report(minijax, MISTAKES[title].run)
    assert "/minijax/" not in text, text


def test_reports_are_short():
    lengths = [report(minijax, m.run)[1].count("\n") for m in MISTAKES.values()]
    assert len(lengths) >= 80 and sum(lengths) / len(lengths) <= 12


@pytest.mark.parametrize("title", JAX_WORDS)
def test_words_that_jax_asks_for(title):
    assert JAX_WORDS[title] in message(minijax, MISTAKES[title].run)[1]


@pytest.mark.parametrize("title", MISTAKES)
def test_class_is_the_recorded_one(title):
    recorded = json.loads(TABLE.read_text(encoding="utf-8"))["messages"]
    assert message(minijax, MISTAKES[title].run)[0] == recorded[title][0]


def test_reports_are_shorter_than_those_of_jax():
    table = json.loads(TABLE.read_text(encoding="utf-8"))["lines"]
    ours = [report(minijax, m.run)[1].count("\n") for m in MISTAKES.values()]
    assert list(table) == list(MISTAKES) and sum(ours) < sum(table.values())


def test_each_mistake_is_on_the_page():
    text = PAGE.read_text(encoding="utf-8")
    assert not [title for title in MISTAKES if f"## {title}\n" not in text]
