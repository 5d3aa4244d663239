"""Programs in parts, from one meeting of the replicas to the next.

Reference: the supersteps of Valiant, *A bridging model for parallel computation*
(1990).
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.jitting.costs import nbytes
from minijax.kernels.program_steps import Launch, LoweredProgram
from minijax.machine.executables import nanoseconds_of
from minijax.machine.locations import walk
from minijax.machine.program_text import cut_at_meetings
from minijax.teams.joint_exchanges import MEETS
from minijax.teams.meeting_code import ROW, SMALL
from minijax.threads.cores import available
from minijax.threads.ranges import time_of_kernel

SHORT = 60_000  # nanoseconds that several threads would save at most


def meets(step):
    """Return whether replicas meet in a step."""
    return isinstance(step, MEETS) and getattr(step, "how", None) != "index"


def parted_at_meetings(steps):
    """Return steps in parts that end with a meeting, and each meeting once more.

    There are none if a branch or a loop holds a meeting, or if the table of many arrays
    that meet is too long to stay.
    """
    parts: list = [[]]
    for step in steps:
        parts[-1].append(step)
        if meets(step) and type(step) in MEETS:
            parts += [[step], []]
        elif any(map(meets, walk([step]))):
            return []
        if len(getattr(step, "parts", ())) * ROW > 2 * SMALL:
            return []
    return [part for part in parts if part]


def time_of_step(step, target):
    """Return about how many nanoseconds one thread takes for a step."""
    if type(step) is Launch:
        return time_of_kernel(step.kernel, target)
    if type(step) in MEETS:
        return sum(map(nbytes, [*step.reads, *step.writes])) / target.bandwidth
    return nanoseconds_of(LoweredProgram([], [], [], [step]))


def time_in_turn(program):
    """Return about how many nanoseconds one thread takes for all replicas."""
    executable = program.executable
    steps, target = executable.lowered.steps, executable.target
    return program.size * sum(time_of_step(step, target) for step in steps)


def takes_turns(program):
    """Return whether one thread runs all replicas, as more would save too little."""
    size, time = program.size, time_in_turn(program)
    save = time - time / min(size, available())
    return size == 1 or bool(program.executable.parts) and save <= SHORT


cut_at_meetings.value = parted_at_meetings
