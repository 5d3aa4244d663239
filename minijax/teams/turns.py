# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Programs in parts, from one meeting of the replicas to the next.

Reference: the supersteps of Valiant, *A bridging model for parallel computation*
(1990).
"""

from minijax.machine.locations import walk
from minijax.machine.program_text import cut_at_meetings
from minijax.teams.joint_exchanges import MEETS
from minijax.teams.meeting_code import ROW, SMALL


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


cut_at_meetings.value = parted_at_meetings
