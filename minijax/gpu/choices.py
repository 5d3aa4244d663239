"""Which shape of launch a kernel has on a card, and which launches a program."""

# Made from chapters/34_gpu_upper.md by `make chapter`;
# edit the chapter, not this file.

from minijax.gpu.block_scans import scan_of
from minijax.gpu.launches import LaunchShape, launch_of, outer_axes
from minijax.gpu.parts import in_parts
from minijax.gpu.tiles import tiles_of
from minijax.gpu.vector_threads import vectors_of
from minijax.kernels.parts import runs
from minijax.kernels.program_steps import Launch


def shape_of(kernel, unaligned=()):
    """Return the shape of launch that suits a kernel.

    Args:
      kernel: a `Kernel`.
      unaligned: names of parameters that may begin where no 16 bytes begin.
    """
    if any(map(runs, kernel.nodes)):
        return scan_of(kernel) or LaunchShape(outer_axes(kernel))
    return tiles_of(kernel) or vectors_of(kernel, unaligned) or launch_of(kernel)


def for_card(program):
    """Return a fused `LoweredProgram` whose launches fill a card."""
    steps = []
    for step in program.steps:
        if isinstance(step, Launch):
            steps += in_parts(step)
        elif step.programs:
            steps.append(step.with_programs([*map(for_card, step.programs)]))
        else:
            steps.append(step)
    return program._replace(steps=steps)
