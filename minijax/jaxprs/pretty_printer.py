"""Pretty printing: how jaxprs and their variables are written.

A *document* says what is written and where a line may end; `format_document` decides
where it does. A document is a string, a `LineBreak`, a `Nest`, a `Group`, a `Note`, or
a tuple of documents.

Method: Philip Wadler, "A prettier printer" (2003), in the strict form of Christian
Lindig's "Strictly pretty" (2000).

References: ``JaxprPpContext`` in ``jax._src.core``, ``str(jax.make_jaxpr(f)(x))``,
``Jaxpr.pretty_print``.
"""

# Made from chapters/07_jaxprs_ground.md by `make chapter`;
# edit the chapter, not this file.

import dataclasses
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import chain, count, repeat
from typing import Any

import numpy as np

from minijax import lax
from minijax.core import RuleTable

# Pretty printing: text that knows where its lines may end.


@dataclass(slots=True, eq=False, repr=False)
class LineBreak:
    """A place where a line may end; if it does not, `flat` stands there."""

    flat: str = " "


@dataclass(slots=True, eq=False, repr=False)
class Nest:
    """A document whose new lines are indented by `amount` more columns."""

    amount: int
    inside: object


@dataclass(slots=True, eq=False, repr=False)
class Group:
    """A document that is written on one line if it fits there."""

    inside: object


@dataclass(slots=True, eq=False, repr=False)
class Note:
    """A remark on the line it stands in, written behind the line's end."""

    text: str


def concat_with_separator(separator, documents):
    """Return one document with `separator` between the given ones."""
    parts = []
    for document in documents:
        parts += [separator, document] if parts else [document]
    return tuple(parts)


def split_words_doc(document):
    """Yield a document's words, in order, with no line ended."""
    todo = [document]
    while todo:
        match todo.pop():
            case str() as word:
                yield word
            case LineBreak(flat):
                yield flat
            case Nest(_, inside) | Group(inside):
                todo.append(inside)
            case Note():
                pass
            case parts:
                todo.extend(reversed(parts))


def flat_text(document):
    """Return a document's text with no line ended."""
    return "".join(split_words_doc(document))


def fits(document, room):
    """Return whether a document with no line ended has at most `room` letters."""
    for word in split_words_doc(document):
        room -= len(word)
        if room < 0:
            return False
    return True


def format_document(document, width=80):
    """Return a document's text; a group that is wider than `width` ends its lines."""
    lines, notes = [""], defaultdict(list)
    todo = [(0, False, document)]
    while todo:
        indent, flat, document = todo.pop()
        match document:
            case str():
                lines[-1] += document
            case Note(text):
                notes[len(lines) - 1].append(text)
            case LineBreak() if flat:
                lines[-1] += document.flat
            case LineBreak():
                lines.append(" " * indent)
            case Nest(amount, inside):
                todo.append((indent + amount, flat, inside))
            case Group(inside):
                flat = flat or fits(inside, width - len(lines[-1]))
                todo.append((indent, flat, inside))
            case _:
                todo.extend((indent, flat, part) for part in reversed(document))
    return "\n".join(_with_notes(lines, notes))


def _with_notes(lines, notes):
    width = max(map(len, lines))
    for number, line in enumerate(lines):
        remarks = dict.fromkeys(notes[number])
        yield f"{line:{width}} # {', '.join(remarks)}" if remarks else line


# Letters for the variables of a jaxpr, and how lists of variables are written.


def letters(number):
    """Return the name of the variable with this number: a, …, z, ba, bb, …"""
    rest, digit = divmod(number, 26)
    return (letters(rest) if rest else "") + chr(ord("a") + digit)


class PrintContext:
    """What the parts of one text have in common.

    Args:
      jaxpr: the outermost jaxpr, if there is one.
      shared: names of jaxprs that are written once, in front.
      source_info: whether to note each equation's source.
      print_shapes: whether to write types where variables are defined.

    Attributes:
      names: the letter of each variable; a new one for a variable not met before.
    """

    def __init__(self, jaxpr=None, shared=(), source_info=False, print_shapes=True):
        self.shared = dict(shared)
        taken = set(self.shared.values())
        fresh = (name for name in map(letters, count()) if name not in taken)
        unused = unused_variables(jaxpr) if jaxpr else ()
        self.names = defaultdict(lambda: next(fresh), dict.fromkeys(unused, "_"))
        self.source_info, self.print_shapes = source_info, print_shapes


def unused_variables(jaxpr):
    """Return the results of equations that nothing reads."""
    read = {*jaxpr.outvars}.union(*(eqn.invars for eqn in jaxpr.eqns))
    return [var for eqn in jaxpr.eqns for var in eqn.outvars if var not in read]


def pp_vars(atoms, writing, separator=""):
    """Return the document of variables and literals that are read."""
    return _fill([atom.spell(writing.names) for atom in atoms], separator)


def pp_binders(variables, writing):
    """Return the document of variables that are defined, with their types."""
    words = [var.spell(writing.names) for var in variables]
    if writing.print_shapes:
        avals = [var.aval.str_short() for var in variables]
        words = [f"{word}:{aval}" for word, aval in zip(words, avals)]
    return _fill(words)


def _fill(words, separator=""):
    return Nest(2, Group(concat_with_separator((separator, Group(LineBreak())), words)))


# How a jaxpr is written: definitions, equations, results, in lines of 80 columns.


def pp_eqn_default(eqn, writing, params=None):
    """Return the document of an equation; `params` are shown in place of its own."""
    params = dict(sorted(eqn.params.items())) if params is None else params
    source = Note(str(eqn.source)) if writing.source_info and eqn.source else ()
    left = (pp_binders(eqn.outvars, writing), " = ") if eqn.outvars else ()
    shown, operands = write_params(params, writing), pp_vars(eqn.invars, writing)
    return (left, source, eqn.primitive.name, shown, " ", operands)


# Rules ``rule(eqn, writing)`` return the document of an equation.
pp_eqn_rules = RuleTable("print", default=pp_eqn_default)


def pp_eqn(eqn, writing):
    """Return the document of an equation, by its primitive's own rule if any."""
    return pp_eqn_rules[eqn.primitive](eqn, writing)


def write_params(params, writing):
    """Return the document ``[key=value …]`` of parameters, in the given order."""
    if not params:
        return ()
    values = list(map(write_value, params.values(), repeat(writing)))
    pairs = [(f"{key}=", value) for key, value in zip(params, values)]
    return Group(
        (
            Nest(2, ("[", LineBreak(""), concat_with_separator(LineBreak(), pairs))),
            LineBreak(""),
            "]",
        )
    )


def write_value(value, writing):
    """Return the document of a parameter's value."""
    if isinstance(value, tuple) and value and all(map(_is_jaxpr, value)):
        jaxprs = concat_with_separator(
            LineBreak(), [write_value(part, writing) for part in value]
        )
        return Group((Nest(2, ("(", LineBreak(""), jaxprs)), LineBreak(""), ")"))
    if _is_jaxpr(value):
        jaxpr = _open(value)
        return writing.shared.get(jaxpr) or pp_jaxpr(jaxpr, writing)
    if isinstance(value, frozenset):
        return f"frozenset({{{', '.join(map(repr, sorted(value)))}}})"
    return re.sub(r"(?<= at 0x)[0-9a-f]+", lambda m: "X" * len(m[0]), str(value))


def _is_jaxpr(value):
    return hasattr(value, "eqns")


def _open(jaxpr):
    return getattr(jaxpr, "jaxpr", jaxpr)


def shared_jaxprs(jaxpr):
    """Return names for the jaxprs inside `jaxpr` that occur twice or are long."""
    uses, called, todo = Counter(), {}, [jaxpr]
    for outer in todo:  # which grows on the way
        for eqn in outer.eqns:
            for sub in jaxprs_in_params(eqn.params):
                uses[sub] += 1 + (len(sub.eqns) > 10)
                called.setdefault(sub, _name_of_call(eqn.params))
                if uses[sub] <= 4:  # enough to know: long ones count double
                    todo.append(sub)
    names = {}
    for sub in [sub for sub, number in uses.items() if number > 1]:
        names[sub] = _unlike(called[sub], names.values())
    return names


def _name_of_call(params):
    """Return the name of what is called; one with rules of its own has none in JAX."""
    name = "jaxpr" if "call_jaxpr" in params else params.get("name", "jaxpr")
    return str(name).strip("<>")


def _unlike(name, taken):
    """Return `name`, with a number behind it if it is taken."""
    candidates = chain([name], (f"{name}{number}" for number in count(1)))
    return next(candidate for candidate in candidates if candidate not in taken)


def _write_broadcast_in_dim(eqn, writing):
    """Leave out the shape, which the result's type says, and an empty mapping."""
    dimensions = eqn.params["broadcast_dimensions"]
    shown = {"broadcast_dimensions": dimensions} if dimensions else {}
    return pp_eqn_default(eqn, writing, shown)


def _write_dot_general(eqn, writing):
    """Leave out what is None, and write the axes as lists, which are shorter."""
    given = sorted(eqn.params.items())
    params = {key: value for key, value in given if value is not None}
    pairs = params["dimension_numbers"]
    params["dimension_numbers"] = tuple(tuple(map(list, pair)) for pair in pairs)
    return pp_eqn_default(eqn, writing, params)


pp_eqn_rules[lax.broadcast_in_dim_p] = _write_broadcast_in_dim
pp_eqn_rules[lax.dot_general_p] = _write_dot_general


def pp_jaxpr(jaxpr, writing):
    """Return the document ``{ lambda … }`` of a jaxpr."""
    constvars = pp_binders(jaxpr.constvars, writing)
    invars = pp_binders(jaxpr.invars, writing)
    eqns = concat_with_separator(
        LineBreak("; "), list(map(pp_eqn, jaxpr.eqns, repeat(writing)))
    )
    results = pp_vars(jaxpr.outvars, writing, ",")
    end = ",)" if len(jaxpr.outvars) == 1 else ")"
    head = ("{ lambda ", constvars, "; ", invars, ". let")
    body = (Nest(2, (LineBreak(), eqns)), LineBreak(), "in (", results, end)
    return Group((Nest(2, (head, body)), " }"))


def jaxprs_in_params(params: dict[str, Any]) -> list:
    """Return the jaxprs among an equation's parameters, closed ones opened.

    Args:
      params: dictionary; a value may be a jaxpr or a tuple of jaxprs.
    """
    values = []
    for value in params.values():
        values += value if isinstance(value, tuple) else [value]
    return [_open(value) for value in values if _is_jaxpr(value)]


def subjaxprs(jaxpr: Any) -> list:
    """Return the jaxprs in the parameters of a jaxpr's equations, not those in them."""
    return [sub for eqn in jaxpr.eqns for sub in jaxprs_in_params(eqn.params)]


def jaxpr_text(
    jaxpr,
    source_info=False,
    print_shapes=True,
    width=80,
    *,
    use_color=False,
    name_stack=False,
):
    """Return the text of a jaxpr, as JAX writes it.

    Args:
      jaxpr: a `Jaxpr`.
      source_info: whether to write each equation's source behind its line.
      print_shapes: whether to write the types of variables where they are defined.
      width: columns after which a line is ended, where it may be.
      use_color, name_stack: accepted for compatibility: the text has no colours, and
        no names of scopes.
    """
    shared = shared_jaxprs(jaxpr)
    writing = PrintContext(jaxpr, shared, source_info, print_shapes)
    document = tuple(
        ("let ", name, " = ", pp_jaxpr(sub, writing), " in", LineBreak())
        for sub, name in shared.items()
    )
    return format_document((document, pp_jaxpr(jaxpr, writing)), width)


# What variables, literals, equations and programs inherit: their texts and their types.


class VarText:
    """How a variable prints."""

    __slots__ = ()

    def __repr__(self):
        return f"Var({self.aval.str_short()})"

    def spell(self, names):
        """Return the letter that the table `names` has for this variable."""
        return names[self]


class LiteralText:
    """How a literal prints."""

    __slots__ = ()

    def __repr__(self):
        return f"Literal({self.val})"

    def spell(self, names):
        """Return the number and its type, such as ``2.0:f32[]``."""
        number = np.asarray(self.val).item() if np.ndim(self.val) == 0 else "[...]"
        return f"{number}:{self.aval.str_short()}"


class EquationText:
    """How an equation prints."""

    __slots__ = ()

    def __repr__(self):
        return flat_text(pp_eqn(self, PrintContext())).rstrip()


@dataclasses.dataclass(slots=True, eq=False, repr=False)
class Replaceable:
    """What has attributes, of which a copy may have others."""

    def replace(self, **changes):
        """Return a copy in which some attributes are different."""
        return dataclasses.replace(self, **changes)


def check_number(kind, variables, values):
    """Raise a TypeError unless there is a value for each variable."""
    if len(variables) != len(values):
        types = ", ".join(var.aval.str_short() for var in variables) or "none"
        raise TypeError(
            f"A jaxpr with {len(variables)} {kind} ({types}) was given {len(values)}."
        )


class ProgramText:
    """What jaxprs and closed jaxprs tell about themselves."""

    __slots__ = ()

    @property
    def in_avals(self):
        """The abstract values of the arguments."""
        return [var.aval for var in self.invars]

    @property
    def out_avals(self):
        """The abstract values of the results."""
        return [atom.aval for atom in self.outvars]

    def __repr__(self):
        return self.pretty_print()

    def pretty_print(self, **settings):
        """Return the text; the settings are those of `jaxpr_text`."""
        return jaxpr_text(self, **settings)
