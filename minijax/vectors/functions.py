"""Elementary functions of vectors: the text of functions that callers contain."""

# Made from chapters/24_vectors_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.functions import elementary
from minijax.llvm.instructions import made_of_instructions
from minijax.llvm.types import number_text, splat, type_of, vector_type
from minijax.llvm.writing import LLVMFunction


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
    return f.call(kind, name, *[(kind, arg) for arg in args], own=True)


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
        f.needed |= _rare_texts(function)
    return f.needed | {label: _definition(f, function, label, lanes, result)}


def _harmless(f, kind, x, lanes):
    """Write a vector that has ones in the lanes that do not count: 1 is never rare."""
    mask, one = f.living(), splat(kind, "1.0", lanes)
    return f.choose(mask, x, one, kind, lanes) if mask else x


def _definition(f, function, label, lanes, result, how="alwaysinline"):
    kind = vector_type(type_of(function.result.dtype), lanes)
    params = [
        (vector_type(type_of(node.dtype), lanes), f"%x{node.detail}")
        for node in function.args
    ]
    attributes = f"nounwind {how}"
    return f.definition(label, params, attributes, (kind, result))


def _write_rare(f, function, names, lanes):
    """Write the part for rare arguments, behind a branch; return the result's name."""
    condition, usual = names[function.rare.condition], names[function.result]
    kind = vector_type(type_of(function.result.dtype), lanes)
    any_lane = f.any_of(condition, lanes) if lanes else condition
    f.line(f"br i1 {any_lane}, label %rare, label %done, {SELDOM}")
    f.start("rare")
    slow = _one_by_one(f, function, lanes)
    f.line("br label %done")
    before = f.block
    f.start("done")
    return f.emit(f"phi {kind} [ {usual}, %entry ], [ {slow}, %{before} ]")


# Tells LLVM that a branch is hardly ever taken.
SELDOM = '!prof !{!"branch_weights", i32 1, i32 4000}'


def _one_by_one(f, function, lanes):
    """Write a loop over the lanes that calls the function that is always right."""
    kind = type_of(function.result.dtype)
    vector, given = vector_type(kind, lanes), [f"%x{x.detail}" for x in function.args]

    def value(args):
        pairs = [(kind, arg) for arg in args]
        return f.call(kind, f"{function.label}_rare", *pairs, own=True)

    def body(lane, names):
        args = [f.emit(f"extractelement {vector} {x}, i64 {lane}") for x in given]
        pair = f"{vector} {names[0]}, {kind} {value(args)}"
        return [f.emit(f"insertelement {pair}, i64 {lane}")]

    if not lanes:
        return value(given)
    return f.turns(0, 1, lanes, [(vector, "undef")], body)[0]


def _rare_texts(function):
    """Return the function that is right for all numbers, and takes one at a time."""
    f, names = LLVMFunction(), {node: f"%x{node.detail}" for node in function.args}
    write_nodes(f, [*function.nodes, *function.rare.nodes], names, 0)
    args = [function.rare.condition, function.rare.result, function.result]
    dtype, label = function.result.dtype, f"{function.label}_rare"
    result = f.operation("select", [names[a] for a in args], dtype, dtype, 0)
    return f.needed | {label: _definition(f, function, label, 0, result, "noinline")}
