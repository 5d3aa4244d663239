# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Programs in parts, from one meeting of the replicas to the next.

Reference: the supersteps of Valiant, *A bridging model for parallel computation*
(1990).
"""

from minijax.machine.executables import nanoseconds_of
from minijax.machine.locations import calls, walk
from minijax.machine.program_text import in_parts
from minijax.machine.steps_text import LONGEST
from minijax.teams.joint_exchanges import MEETS
from minijax.teams.meeting_code import ROW, SMALL

SHORT = 250_000  # nanoseconds, as they are estimated, that several threads would save


def meets(step):
    """Return whether replicas meet in a step."""
    return isinstance(step, MEETS) and getattr(step, "how", None) != "index"


def parted_at_meetings(steps):
    """Return steps in parts that end with a meeting, and each meeting once more.

    There are none if a branch or a loop holds a meeting, or a table of many arrays
    would have to stay.
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


def write_parts(text, plan):
    """Write the parts of a short program; return the names of their functions."""
    steps, parts = plan.steps, parted_at_meetings(plan.steps)
    long = sum(map(calls, steps)) > LONGEST or nanoseconds_of(plan.program) > SHORT
    if len(parts) < 2 or text.hosted or long:
        return ["program"] if len(parts) == 1 else []
    first = text.locations.first
    ends = [x for step in filter(meets, steps) for x in (*step.reads, *step.writes)]
    kept = {first.get(buffer, buffer) for buffer in ends}
    for i, part in enumerate(parts):
        text.function(f"turn{i}", part, [], linkage="define", kept=kept)
    return [f"turn{i}" for i in range(len(parts))]


in_parts.value = write_parts
