# Made from chapters/18_fusion.md by `make chapter`;
# edit the chapter, not this file.
"""What a schedule does with its slots."""

import math


class Uses:
    """What a schedule does with its slots.

    Args:
      schedule: the schedule.
      parts: its launches, by their numbers.

    Attributes:
      kept: the slots that have to be stored: of results, and for other steps.
      shared: the slots that several steps write to.
      readers: from slots to the numbers of the launches that read them.
      reads: from slots to how often these load an element, loops around counted in.
    """

    def __init__(self, schedule, parts):
        self.kept, self.shared = {*schedule.outputs}, set()
        self.readers, self.reads = {}, {}
        self.written, self.read, self.slots = {}, {}, []
        seen = set()
        for number, step in enumerate(schedule.steps):
            if number in parts:
                ends = self.noted(parts[number])
            else:
                ends = step.reads, step.writes
                self.kept.update(step.reads)
            self.slots.append(ends)
            self.shared.update(seen.intersection(ends[1]))
            seen.update(ends[1])

    def noted(self, part):
        """Take account of a launch; return what it reads, and what it writes to."""
        for slot, node in part.loads:
            last = max(node.level, default=-1)
            count = math.prod(part.sizes[: last + 1])
            self.reads[slot] = self.reads.get(slot, 0) + count
            self.readers.setdefault(slot, set()).add(part.number)
        return [slot for slot, _ in part.loads], [slot for slot, _ in part.stores]

    def before(self, number):
        """Return the numbers of the steps that have to come before the next one."""
        found, (reads, writes) = set(), self.slots[number]
        for slot in (*reads, *writes):
            found.update(self.written.get(slot, ()))
        for slot in writes:
            found.update(self.read.get(slot, ()))
            self.written.setdefault(slot, []).append(number)
        for slot in reads:
            self.read.setdefault(slot, []).append(number)
        return found

    def collide(self, first, second):
        """Return whether two groups write to one slot, or read what the other writes
        to when it is not whole."""
        return any(
            slot in first.made or slot in first.reads
            for slot in (*second.made, *second.reads)
            if slot in self.shared
        )

    def outside(self, slot, numbers):
        """Return whether a slot is read by others than these launches."""
        return slot in self.kept or not self.readers.get(slot, set()) <= numbers
