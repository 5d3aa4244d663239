"""Traces of a profiler: which spans stand in the file, and what is refused."""

import gzip
import json
import threading

import pytest

import minijax
import minijax.numpy as jnp
from minijax import profiler


def spans_of(folder):
    [file] = folder.rglob("*.trace.json.gz")
    assert file.relative_to(folder).parts[:2] == ("plugins", "profile")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    return [event for event in events if event["ph"] == "X"]


def named(spans, name):
    return [span for span in spans if span["name"] == name]


def test_annotations_calls_and_primitives_are_spans(tmp_path):
    @profiler.annotate_function
    def work(x):
        return jnp.sin(x)

    step = minijax.jit(lambda x: x + 1)
    training = profiler.StepTraceAnnotation("train", step_num=3)
    with profiler.trace(tmp_path), training:
        step(work(jnp.ones(3)))
    spans = spans_of(tmp_path)
    [train], [sine] = named(spans, "train"), named(spans, "sin")
    [called] = named(spans, "PjitFunction(<lambda>)")
    assert train["args"] == {"step_num": "3"}
    assert any(span["name"].endswith("<locals>.work") for span in spans)
    for inner in (sine, called):
        assert train["ts"] <= inner["ts"]
        assert inner["ts"] + inner["dur"] <= train["ts"] + train["dur"]


def test_other_threads_and_levels(tmp_path):
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0

    def elsewhere():
        with profiler.TraceAnnotation("elsewhere"):
            jnp.ones(2).sum()

    with profiler.trace(tmp_path, False, True, options):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        with profiler.TraceAnnotation("here"):
            pass
    elsewhere()  # no trace is taken any more
    first, second = sorted(spans_of(tmp_path), key=lambda span: span["ts"])
    assert [first["name"], second["name"]] == ["elsewhere", "here"]
    assert first["tid"] != second["tid"]
    assert list(tmp_path.rglob("perfetto_trace.json.gz"))


def test_one_trace_at_a_time(tmp_path):
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()
    with pytest.raises(NotImplementedError, match="ui.perfetto.dev"):
        profiler.start_trace(tmp_path, create_perfetto_link=True)
    once_only = pytest.raises(RuntimeError, match="already been started")
    with profiler.trace(tmp_path), once_only:
        profiler.start_trace(tmp_path)
    with pytest.raises(ZeroDivisionError), profiler.trace(tmp_path / "failed"):
        1 / 0  # noqa: B018
    assert spans_of(tmp_path / "failed") is not None
