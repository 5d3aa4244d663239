"""The protocol of steps: a step of one's own, and steps with holes."""

from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest

import minijax
from minijax.extend.core import Primitive
from minijax.jitting.stages import FLOPS
from minijax.kernels.builder import Buffer, contiguous_view
from minijax.kernels.lowering import (
    StepKind,
    array_from_view,
    as_bytes,
    copy_cost,
    kernel_rules,
    lower,
    program_cost,
    step_kinds,
)

V = np.ones(4, np.float32)


class Doubling(NamedTuple):
    """A step that doubles the numbers of a buffer."""

    x: Buffer
    out: Buffer

    @property
    def programs(self):
        """The programs within the step: none."""
        return ()

    @property
    def reads(self):
        """The buffer that the step reads."""
        return [self.x]

    @property
    def writes(self):
        """The buffer that the step writes to."""
        return [self.out]

    def __str__(self):
        return f"{self.out} = twice {self.x}"


def doubled(program, step):
    """Return a function of the memory that does a `Doubling`."""
    x = contiguous_view(step.x, step.x.dtype, (step.x.size,))

    def run(memory):
        memory[step.out] = as_bytes(2 * array_from_view(x, memory))

    return run


def write_doubling(f, step):
    """Write a loop that doubles floats."""
    x, out = map(f.address, (step.x, step.out))

    def turn(index, _):
        distance = f.emit(f"mul i64 {index}, 4")
        source, target = (
            f.emit(f"bitcast i8* {f.offset(base, distance)} to float*")
            for base in (x, out)
        )
        number = f.emit(f"load float, float* {source}")
        twice = f.emit(f"fadd float {number}, {number}")
        f.line(f"store float {twice}, float* {target}")
        return []

    f.loop(step.x.size, [], turn)


@pytest.fixture
def double(monkeypatch):
    def rule(lowering, eqn, x):
        out = lowering.allocate(eqn.outvars[0].aval)
        lowering.steps.append(Doubling(x.source, out.source))
        return [out]

    primitive = Primitive("double")
    primitive.def_abstract_eval(lambda x: x)
    kernel_rules[primitive] = rule
    yield lambda x: primitive.bind(x)
    del kernel_rules[primitive]
    step_kinds.pop(Doubling, None)


@pytest.mark.parametrize("backend", ["kernels", "llvm", "planned", "cpu"])
@pytest.mark.parametrize("write", [None, write_doubling])
def test_a_step_of_ones_own(double, backend, write):
    step_kinds[Doubling] = StepKind(doubled, copy_cost, write)
    f = minijax.jit(lambda x: double(x) + 1, backend=backend)
    np.testing.assert_array_equal(f(V), 2 * V + 1)
    loop = minijax.jit(
        lambda x: minijax.lax.fori_loop(0, 3, lambda i, c: double(c) + 1, x),
        backend=backend,
    )
    np.testing.assert_array_equal(loop(V), 8 * V + 7)


@pytest.mark.parametrize("write", [None, write_doubling])
def test_its_costs_and_its_profile(double, write):
    step_kinds[Doubling] = StepKind(doubled, copy_cost, write)
    f = minijax.jit(lambda x: double(x) + 1, backend="cpu")
    compiled = f.lower(V).compile()
    counts = compiled.cost_analysis()
    assert (counts["flops"], counts["bytes accessed"]) == (4, 2 * 2 * V.nbytes)
    rows = compiled.profile(V).rows.values()
    assert [type(step).__name__ for step, *_ in rows] == ["Doubling", "Launch"]
    assert all(calls == 1 for _, calls, _ in rows)


def test_a_step_that_is_not_registered(double):
    with pytest.raises(TypeError, match="type Doubling, which is not registered"):
        minijax.jit(double, backend="cpu")(V)
    closed = minijax.make_jaxpr(double)(V)
    with pytest.raises(TypeError, match="step_kinds.Doubling. = StepKind"):
        program_cost(lower(closed))


def without(name):
    """A class of steps with a hole."""
    own = {key: value for key, value in vars(Doubling).items() if key != name}
    return type("Holed", (), {key: own[key] for key in own if key in KEPT})


KEPT = {"reads", "writes", "programs", "__str__"}


@pytest.mark.parametrize("name", sorted(KEPT))
def test_a_class_with_a_hole(name):
    with pytest.raises(TypeError, match=f"Holed.{name}: "):
        step_kinds[without(name)] = StepKind(doubled, copy_cost)
    assert not any(kind.__name__ == "Holed" for kind in step_kinds)


def test_the_class_is_whole_without_these_holes():
    kind = without("")
    try:
        step_kinds[kind] = StepKind(doubled, copy_cost)
    finally:
        step_kinds.pop(kind, None)


@pytest.mark.parametrize("rules", [(None, copy_cost), (doubled, None)])
def test_rules_with_a_hole(rules):
    with pytest.raises(TypeError, match="StepKind.(run|cost): a function"):
        step_kinds[Doubling] = StepKind(*rules)
    assert Doubling not in step_kinds


def test_every_type_of_step_is_whole():
    of_a_card = {
        "DeviceMatmul",
        "DeviceConvolution",
        "CublasMatmul",
        "SortPass",
        "BlockLoop",
    }
    names = {kind.__name__ for kind in step_kinds} - of_a_card
    everywhere = "Launch Evaluate Matmul TapProduct Sort CallLapack Branch"
    everywhere += " ScanStep While"
    of_replicas = {"Collective", "BucketedAllReduce", "AllReduceStart", "AllReduceDone"}
    assert names == {*everywhere.split()} | of_replicas
    for kind, rules in [*step_kinds.items()]:
        step_kinds[kind] = rules  # is checked


def test_rules_of_a_target_stand_in_front():
    def rule(lowering, eqn, x):
        out = lowering.allocate(eqn.outvars[0].aval)
        lowering.steps.append(Doubling(x.source, out.source))
        return [out]

    def none(lowering, eqn, *operands):
        raise minijax.kernels.builder.UnsupportedKernel("not here")

    closed = minijax.make_jaxpr(lambda x: minijax.lax.fori_loop(
        0, 2, lambda i, c: minijax.numpy.tanh(c) * c, x
    ))(V)  # fmt: skip
    tanh = minijax.lax.tanh_p
    kinds = lambda program: [type(s).__name__ for s in program.walk()]  # noqa: E731
    own, other, common = (lower(closed, r) for r in ({tanh: rule}, {tanh: none}, None))
    assert "Doubling" in kinds(own) and "Doubling" not in kinds(common)
    assert str(other) == str(common)
    assert kinds(lower(closed)) == kinds(common)


def test_costs_add_up(double):
    step_kinds[Doubling] = StepKind(doubled, lambda step: Counter({FLOPS: 7}))
    program = lower(minijax.make_jaxpr(lambda x: double(double(x)))(V))
    assert program_cost(program) == Counter({FLOPS: 14})
