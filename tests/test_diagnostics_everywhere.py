"""An error of the user's line, under every transformation: no frame of the package."""

import importlib.util
import subprocess
import sys
import traceback

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax.diagnostics import source_info as frames
from minijax.diagnostics.source_info import traceback_entries

V = np.ones(3, np.float32)


def wrong(x):
    y = jnp.sin(x)
    return (y + jnp.ones(5)).sum()  # guilty


def written(x):
    return minijax.make_jaxpr(wrong)(x)


def custom_rule(x):
    f = minijax.custom_vjp(lambda x: x.sum())
    f.defvjp(lambda x: (jnp.sum(x), x), lambda kept, g: (wrong(kept) * kept,))
    return minijax.grad(f)(x)


def custom_tangents(x):
    f = minijax.custom_jvp(lambda x: x.sum())
    f.defjvp(lambda primals, tangents: (f(*primals), wrong(*tangents)))
    return minijax.jvp(f, (x,), (x,))


def called_back(x):
    shape = minijax.ShapeDtypeStruct((), np.float32)
    return minijax.jit(lambda x: minijax.pure_callback(wrong, shape, x))(x)


EVERYWHERE = {
    "plain": wrong,
    "jit": minijax.jit(wrong),
    "jit of jit": minijax.jit(minijax.jit(wrong)),
    "make_jaxpr": written,
    "grad": minijax.grad(wrong),
    "jit of grad": minijax.jit(minijax.value_and_grad(wrong)),
    "grad of jit": minijax.grad(minijax.jit(wrong)),
    "jvp": lambda x: minijax.jvp(wrong, (x,), (x,)),
    "vjp": lambda x: minijax.vjp(wrong, x),
    "linearize": lambda x: minijax.linearize(wrong, x),
    "jacfwd": minijax.jacfwd(wrong),
    "hessian": minijax.hessian(wrong),
    "vmap": lambda x: minijax.vmap(wrong)(jnp.stack([x, x])),
    "jit of vmap of grad": lambda x: minijax.jit(minijax.vmap(minijax.grad(wrong)))(
        jnp.stack([x, x])
    ),
    "scan": lambda x: lax.scan(lambda c, _: (wrong(c) + c, None), x, length=2),
    "map": lambda x: lax.map(lambda _: wrong(x), jnp.ones(2)),
    "fori_loop": lambda x: lax.fori_loop(0, 2, lambda i, c: c + wrong(c), x),
    "while_loop": lambda x: lax.while_loop(lambda c: wrong(c) < 1, lambda c: c, x),
    "cond": lambda x: lax.cond(x[0] > 0, wrong, jnp.sum, x),
    "switch": lambda x: lax.switch(1, [jnp.sum, wrong], x),
    "associative_scan": lambda x: lax.associative_scan(
        lambda a, b: wrong(a) + wrong(b), jnp.ones((4, 3))
    ),
    "jit of scan of cond": minijax.jit(
        lambda x: lax.scan(
            lambda c, _: (c + lax.cond(True, wrong, jnp.sum, c), None), x, length=2
        )
    ),
    "backward rule": custom_rule,
    "tangent rule": custom_tangents,
    "eval_shape": lambda x: minijax.eval_shape(wrong, x),
    "lower": lambda x: minijax.jit(wrong).lower(x),
    "trace": lambda x: minijax.jit(wrong).trace(x),
    "disable_jit": lambda x: minijax.disable_jit()(minijax.jit(wrong))(x),
    "tree_map": lambda x: minijax.tree_util.tree_map(wrong, [x, x]),
}


def caught(f):
    with pytest.raises(Exception, match="roadcast") as found:
        f(V)
    return found.value


@pytest.mark.parametrize("way", EVERYWHERE)
def test_the_last_frame_is_the_guilty_line(way):
    steps = traceback_entries(caught(EVERYWHERE[way]).__traceback__)
    names = [step.tb_frame.f_code.co_filename for step in steps]
    assert not [name for name in names if "/minijax/" in name]
    assert steps[-1].tb_frame.f_code is wrong.__code__


def test_a_callback_shows_its_call_and_its_cause():
    error = caught(called_back)
    for part, name in ((error, "called_back"), (error.__cause__, "wrong")):
        assert traceback_entries(part.__traceback__)[-1].tb_frame.f_code.co_name == name
    assert "y: float32[3], from" in "\n".join(error.__cause__.__notes__)


@pytest.mark.parametrize("way", EVERYWHERE)
def test_both_operands_are_named_once(way):
    notes = "\n".join(caught(EVERYWHERE[way]).__notes__)
    assert notes.count("  y: float32[") == notes.count("y = jnp.sin(x)") == 1
    assert "the second operand: float32[5]" in notes


# Functions of arrays that call others, on operands that they have converted.
CONVERTING = {
    "where": lambda wide, whole: jnp.where(wide > 0, wide, whole),
    "hypot": lambda wide, whole: jnp.hypot(wide, whole),
    "dot": lambda wide, whole: jnp.dot(wide, whole),
    "a method": lambda wide, whole: wide.dot(whole),
    "an operator": lambda wide, whole: wide @ whole,
    "concatenate": lambda wide, whole: jnp.concatenate([wide, whole]),
}


@pytest.mark.parametrize("name", CONVERTING)
@pytest.mark.parametrize("around", [lambda f: f, minijax.jit, minijax.checkpoint])
def test_operands_are_those_of_the_user_and_not_what_became_of_them(name, around):
    arrays = jnp.ones((3, 4)), jnp.ones((5, 2), int)
    with pytest.raises((TypeError, ValueError)) as found:
        around(CONVERTING[name])(*arrays)
    notes = "\n".join(found.value.__notes__)
    assert "  wide: float32[3,4]" in notes and "  whole: int32[5,2]" in notes
    steps = traceback_entries(found.value.__traceback__)
    assert not [s for s in steps if "/minijax/" in s.tb_frame.f_code.co_filename]


LAYERS = {"first": jnp.ones((3, 4))}


def test_a_global_operand_has_its_name_and_one_of_the_same_spelling_has_not():
    with pytest.raises(TypeError) as found:
        (lambda x: x @ LAYERS["first"])(jnp.ones(7))
    assert "  LAYERS['first']: float32[3,4]" in found.value.__notes__
    with pytest.raises(TypeError) as found:
        (lambda x: x @ jnp.ones((3, 4)))(jnp.ones(7))
    assert "  the second operand: float32[3,4]" in found.value.__notes__


def test_where_notes_are_not_shown_the_message_has_them(monkeypatch):
    monkeypatch.setattr(frames, "shows_notes", lambda: False)
    assert "\n  y: float32[3], from" in str(caught(wrong))


SESSION = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("import minijax, minijax.numpy as jnp", store_history=True)
shell.run_cell("def f(w, x):\\n    h = jnp.tanh(x)\\n    return h @ w", True)
shell.run_cell("minijax.jit(f)(jnp.ones((5, 2)), jnp.ones((8, 4)))", True)
"""


@pytest.mark.skipif(not importlib.util.find_spec("IPython"), reason="no IPython here")
def test_notebook():
    command = [sys.executable, "-c", SESSION]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "h: float32[8,4], from cell In[2]:2:8 (f): h = jnp.tanh(x)" in said
    assert "w: float32[5,2], the argument w of f" in said
    assert "contraction.py" not in said


BRACKETS = {
    "jnp.r_[a, b]": lambda a, b: jnp.r_[a, b],
    "jnp.c_[a, b]": lambda a, b: jnp.c_[a, b],
    "jnp.mgrid['a']": lambda a, b: jnp.mgrid["a"],
    "jnp.add.reduce": lambda a, b: jnp.add.reduce(a, axis=7),
    "jnp.add.accumulate": lambda a, b: jnp.add.accumulate(a, axis=7),
    "jnp.add.outer": lambda a, b: jnp.add.outer(a),
    "jnp.add.at": lambda a, b: jnp.add.at(a, 0, 1),
    "jnp.add.reduceat": lambda a, b: jnp.add.reduceat(a, b),
}


@pytest.mark.parametrize("name", BRACKETS)
def test_no_frame_of_the_package_is_shown_for_brackets_and_methods(name):
    with pytest.raises(Exception) as caught:
        BRACKETS[name](jnp.ones((2, 2)), jnp.ones(3))
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert not [frame.filename for frame in frames if "/minijax/" in frame.filename]
    assert "folded away" in "".join(getattr(caught.value, "__notes__", ["folded away"]))
