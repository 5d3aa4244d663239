"""Where an error was raised, and what our function had been given there: diagnostics.

An explainer looks at a `Scene` and returns lines that are added to the error.

Reference: ``jax.errors``, ``BaseException.add_note``.
"""

# Made from chapters/08_errors.md by `make chapter`;
# edit the chapter, not this file.

import contextlib

import numpy as np

from minijax import errors
from minijax.arrays.avals import typeof
from minijax.core import Array
from minijax.diagnostics.frames import UserLine, say, steps_of
from minijax.diagnostics.origins import arguments_of, birth, parts_of
from minijax.diagnostics.tracebacks import guarded, of_arrays, of_user
from minijax.diagnostics.user_lines import caller_of
from minijax.errors import presenters
from minijax.pytrees.key_paths import keystr
from minijax.pytrees.treedefs import tree_leaves, tree_leaves_with_path

ARRAYS = (Array, np.ndarray, np.generic)
GUARD = guarded(steps_of).__code__  # the code of every guard


class Scene:
    """Where an error was raised: the user's line, and our frames under it.

    Attributes:
      frame: the innermost frame of the user, or None.
      line: its `UserLine`.
      below: the frames of ours that it had called, outermost first.
    """

    def __init__(self, error):
        steps = steps_of(error.__traceback__)
        users = [i for i, step in enumerate(steps) if step in of_user(steps)]
        cut = users[-1] + 1 if users else 0
        self.below = [step.tb_frame for step in steps[cut:]]
        self.frame, instruction = None, 0
        if users:
            self.frame, instruction = steps[cut - 1].tb_frame, steps[cut - 1].tb_lasti
        elif steps:
            self.frame = caller_of(steps[0].tb_frame)
            instruction = self.frame.f_lasti if self.frame else 0
        self.line = self.frame and UserLine(self.frame.f_code, instruction)

    @property
    def operands(self):
        """The arrays and tracers that our function was given, each once."""
        given = tree_leaves(arguments_of(self.below[0])) if self.below else []
        leaves = [part for leaf in given for part in parts_of(leaf)]
        found = {id(x): x for x in leaves if isinstance(x, ARRAYS)}
        return list(found.values())


def name_in(frame, value):
    """Return what a frame of the user calls a value: a variable, with a path."""
    from_outside = [(k, frame.f_globals.get(k)) for k in frame.f_code.co_names]
    variables = [*frame.f_locals.items(), *from_outside]
    variables = [(k, v) for k, v in variables if not k.startswith("_")]
    for name, held in variables:
        if held is value:
            return name
    for name, held in variables:
        if isinstance(held, (dict, list, tuple)):
            for path, leaf in tree_leaves_with_path(held):
                if leaf is value:
                    return name + keystr(path)
    return None


def is_told(error):
    """Return whether an error is one of ours about tracers, which has its own lines."""
    return type(error).__module__ == errors.__name__


def asked_arrays(scene):
    """Return whether the user had called a function of arrays."""
    frames = [f for f in scene.below if f.f_code is not GUARD]
    return bool(frames) and of_arrays(frames[0])


PLACES = "first", "second", "third", "fourth"


def about_operands(error, scene):
    """Say of each operand what the user calls it, its type, and where it comes from."""
    operands = scene.operands
    numeric = isinstance(error, (TypeError, ValueError)) and not is_told(error)
    if not numeric or not asked_arrays(scene) or len(operands) > len(PLACES):
        return []
    return [about(scene, *pair) for pair in zip(PLACES, operands)]


def about(scene, place, value):
    """Return the line about one operand."""
    name = name_in(scene.frame, value)
    parts = [f"{name or f'the {place} operand'}: {typeof(value)}"]
    return ", ".join([*parts, *filter(None, [birth(scene.line, name, value)])])


# Functions ``explainer(error, scene)`` that return lines; each knows its own errors.
explainers = [about_operands]


def explain(error):
    """Add to an error, once, the lines that its explainers have for it."""
    if hasattr(error, "_is_explained") or error.__traceback__ is None:
        return
    error._is_explained = True
    scene = Scene(error)
    if scene.frame is None or not scene.below:
        return
    for explainer in explainers:
        with contextlib.suppress(Exception):  # whatever it is, it is not the user's
            for line in explainer(error, scene):
                say(error, f"  {line}")


presenters.insert(0, explain)
