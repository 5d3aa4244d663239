"""What runs the cells of a page in the reader's browser, inside of Pyodide.

It knows of IPython what the chapters use: the value of a last expression is displayed,
objects show themselves by `_repr_mimebundle_`, and magics are passed over.
"""

import ast
import contextlib
import io
import json
import linecache
import sys
import traceback
import types

AMEND = "#| amend "
KINDS = "text/html", "image/svg+xml", "text/plain"  # the richest first
main = types.ModuleType("__main__")
shown: list = []


def display(*values):
    """Show values in the output of the running cell."""
    for value in values:
        bundle = bundle_of(value)
        kind = next(kind for kind in KINDS if kind in bundle)
        shown.append((kind, bundle[kind]))


def bundle_of(value):
    """What a value has to show, by kinds."""
    if hasattr(value, "_repr_mimebundle_"):
        return value._repr_mimebundle_()
    found = {"text/plain": repr(value)}
    for kind, name in (("text/html", "_repr_html_"), ("image/svg+xml", "_repr_svg_")):
        text = getattr(value, name, lambda: None)()
        if text is not None:
            found[kind] = text
    return found


def plain(source):
    """A cell without its magics; the lines stay where they are."""
    lines = source.split("\n")
    return "\n".join("" if line.lstrip().startswith("%") else line for line in lines)


def execute(body, name, space):
    """Execute statements; display the value of the last one if it is an expression."""
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), name, "exec"), space)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), name, "eval"), space)
        if value is not None:
            display(value)


@contextlib.contextmanager
def captured():
    """Collect what is printed and displayed, in the order in which it comes."""
    outputs, said = [], io.StringIO()

    class Values(list):
        def append(self, output):
            flush()
            outputs.append(output)

    def flush():
        if said.getvalue():
            outputs.append(("text/plain", said.getvalue()))
        said.seek(0)
        said.truncate()

    global shown
    before, shown = shown, Values()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            yield outputs
    finally:
        flush()
        shown = before


def run(source, number, space=None):
    """Run a cell; return its outputs as JSON: pairs of a kind and a text.

    The kind of an error is ``error``, and its text the traceback from the cell on.
    """
    head, _, code = source.partition("\n")
    if head.startswith(AMEND):
        given = head[len(AMEND) :], code
        source = f"from minijax_book.amending import amend; amend{given}"
    name, text = f"<ipython-input-{number}-page>", plain(source)  # as in notebooks
    linecache.cache[name] = len(text), None, text.splitlines(True), name
    with captured() as outputs:
        try:
            execute(ast.parse(text, name).body, name, space or main.__dict__)
        except BaseException as error:
            outputs_of_error = "".join(_lines(error))
        else:
            outputs_of_error = ""
    if outputs_of_error:
        outputs.append(("error", outputs_of_error))
    return json.dumps(outputs)


def _lines(error):
    """The traceback of an error, without the frames of this file."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return traceback.format_exception(type(error), error, frames)


def names_of(body):
    """The names that statements of a cell define at its top level."""
    found = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            targets = [x for target in node.targets for x in ast.walk(target)]
            found.update(x.id for x in targets if isinstance(x, ast.Name))
    return found


def check(answer, solution):
    """Run what a solution does with a reader's definitions in the place of its own.

    Returns:
      A sentence: whether the same is printed and displayed, and no assertion fails.
    """
    try:
        own = ast.parse(plain(answer)).body
    except SyntaxError as error:
        return f"This is no Python: {error}."
    theirs = ast.parse(plain(solution)).body
    wanted = names_of(n for n in theirs if not isinstance(n, ast.Assign))
    replaced = names_of(own) & wanted
    if not replaced:
        missing = ", ".join(sorted(wanted))
        return f"The solution defines {missing}: give your own definition of it."
    rest = [node for node in theirs if not names_of([node]) & replaced]
    expected = run(solution, "of the solution", {**main.__dict__})
    space, names = {**main.__dict__}, ", ".join(sorted(replaced))
    tried = json.loads(run(answer, "of your answer", space))
    found = run("\n".join(map(ast.unparse, rest)), "of the solution", space)
    for kind, text in [*tried, *json.loads(found)]:
        if kind == "error":
            return f"Your {names} fails: {text.splitlines()[-1]}"
    if found == expected:
        return f"Right: with your {names} the results are the same."
    first = [text for _, text in json.loads(found)]
    second = [text for _, text in json.loads(expected)]
    if run(solution, "of the solution", {**main.__dict__}) != expected:
        return f"It runs. The results differ each time, see for yourself: {first}."
    return f"Not the same yet. Yours: {first}. The solution's: {second}."


main.__dict__.update(display=display, __builtins__=__builtins__)
sys.modules["__main__"] = main
