"""Elementary functions of vectors: the text of functions that callers contain."""

# Made from chapters/24_vectors_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.functions import elementary
from minijax.kernels.kernel import needed
from minijax.llvm.instructions import made_of_instructions
from minijax.llvm.types import number_text, splat, type_of, vector_type
from minijax.llvm.writing import CALLED_ONLY, LLVMFunction


def write_nodes(f, nodes, names, lanes):
    """Write the nodes of a function, and note what they are called in `names`."""
    for node in nodes:
        args = [names[arg] for arg in node.args]
        if node.op == "constant":
            literal = number_text(node.detail)
            names[node] = splat(type_of(node.dtype), literal, lanes)
        else:
            dtype = node.args[-1].dtype
            names[node] = f.operation(node.op, args, dtype, node.dtype, lanes)


def write_function_call(f, op, args, dtype, lanes):
    """Write the call of an elementary function; return None where there is none."""
    found = elementary.function(op, dtype)
    if found is None:
        return None
    name, kind = function_name(found, lanes), vector_type(type_of(dtype), lanes)
    f.needed |= function_texts(found, lanes)
    if lanes and found.rare:
        args = [_harmless(f, type_of(dtype), arg, lanes) for arg in args]
    how = CALLED_ONLY if lanes and f.is_tail() else ""
    return f.call(kind, name, *[(kind, arg) for arg in args], own=True, how=how)


def function_name(function, lanes):
    """Return what a function of so many numbers at once is called."""
    return f"{function.label}_v{lanes}" if lanes else function.label


@made_of_instructions
def function_texts(function, lanes):
    """Return the texts of an elementary function and of what it needs, by names."""
    f = LLVMFunction()
    names = {node: f"%x{node.detail}" for node in function.args}
    write_nodes(f, function.nodes, names, lanes)
    result, label = names[function.result], function_name(function, lanes)
    if function.rare:
        result = _write_rare(f, function, names, lanes)
        f.needed |= _rare_texts(function) | _texts_one_by_one(function, lanes)
    return f.needed | {label: _definition(f, function, label, lanes, result)}


def _kind_of(node, lanes):
    """Return LLVM's type of so many of a node's numbers at once."""
    return vector_type(type_of(node.dtype), lanes)


def _harmless(f, kind, x, lanes):
    """Write a vector that has ones in the lanes that do not count: 1 is never rare."""
    mask, one = f.living(), splat(kind, "1.0", lanes)
    return f.choose(mask, x, one, kind, lanes) if mask else x


def _definition(f, function, label, lanes, result, how="alwaysinline"):
    params = [(_kind_of(x, lanes), f"%x{x.detail}") for x in function.args]
    end = _kind_of(function.result, lanes), result
    return f.definition(label, params, f"nounwind {how}", end)


def _write_rare(f, function, names, lanes):
    """Write the part for rare arguments, behind a branch; return the result's name."""
    condition, usual = names[function.rare.condition], names[function.result]
    kind = _kind_of(function.result, lanes)
    any_lane = f.any_of(condition, lanes) if lanes else condition
    f.line(f"br i1 {any_lane}, label %rare, label %done, {SELDOM}")
    f.start("rare")
    args = [(_kind_of(x, lanes), f"%x{x.detail}") for x in function.args]
    slow = f.call(kind, f"{function_name(function, lanes)}_rare", *args, own=True)
    if lanes:
        slow = f.choose(condition, slow, usual, _kind_of(function.result, 0), lanes)
    f.line("br label %done")
    f.start("done")
    return f.emit(f"phi {kind} [ {usual}, %entry ], [ {slow}, %rare ]")


# Tells LLVM that a branch is hardly ever taken.
SELDOM = '!prof !{!"branch_weights", i32 1, i32 4000}'


def _texts_one_by_one(function, lanes):
    """Return the function of a vector that calls that of a rare number for each lane.

    It is a function of its own: callers contain the others, and need no loop in each.
    """
    if not lanes:
        return {}
    f, kind = LLVMFunction(), _kind_of(function.result, 0)
    label, vector = f"{function_name(function, lanes)}_rare", vector_type(kind, lanes)

    def body(lane, names):
        args = []
        for x in function.args:
            place = f"{_kind_of(x, lanes)} %x{x.detail}, i64 {lane}"
            args.append((_kind_of(x, 0), f.emit(f"extractelement {place}")))
        value = f.call(kind, f"{function.label}_rare", *args, own=True)
        pair = f"{vector} {names[0]}, {kind} {value}"
        return [f.emit(f"insertelement {pair}, i64 {lane}")]

    [result] = f.turns(0, 1, lanes, [(vector, "undef")], body)
    return {label: _definition(f, function, label, lanes, result, "noinline")}


def _rare_texts(function):
    """Return the function that is right for rare numbers, and takes one at a time."""
    f, names = LLVMFunction(), {node: f"%x{node.detail}" for node in function.args}
    rare, label = function.rare, f"{function.label}_rare"
    kept = needed([rare.result])
    nodes = [node for node in (*function.nodes, *rare.nodes) if node in kept]
    write_nodes(f, nodes, names, 0)
    text = _definition(f, function, label, 0, names[rare.result], "noinline")
    return f.needed | {label: text}
