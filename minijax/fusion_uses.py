# Made from chapters/18_fusion.md by `make chapter`;
# edit the chapter, not this file.
"""What a schedule does with its slots."""

class Uses:
    """What a schedule does with its slots.

    Args:
      schedule: the schedule.
      parts: its launches, by their numbers.

    Attributes:
      kept: the slots that have to be stored: of results, and for other steps.
      shared: the slots that several steps write to.
      readers, writers: from slots to the numbers of the steps that read them, and of
        those that write to them.
      reads: from slots to how often launches load an element, loops around counted in.
    """

    def __init__(self, schedule, parts):
        self.kept, self.shared = {*schedule.outputs}, set()
        self.readers, self.writers, self.reads = {}, {}, {}
        for number, step in enumerate(schedule.steps):
            if number not in parts:
                self.kept.update(step.reads)
            self.note(number, parts.get(number, step))
        for part in parts.values():
            for slot, count in zip(part.reads, part.work.often):
                self.reads[slot] = self.reads.get(slot, 0) + count

    def note(self, number, step):
        """Take account of a step, or of the part that it is."""
        for slot in step.reads:
            self.readers.setdefault(slot, []).append(number)
        for slot in {*step.writes}:
            if slot in self.writers:
                self.shared.add(slot)
            self.writers.setdefault(slot, []).append(number)

    def before(self, number, step):
        """Return the numbers of the steps that have to come before one."""
        found = []
        for slot in (*step.reads, *step.writes):
            found += self.writers.get(slot, ())
        for slot in step.writes:
            found += self.readers.get(slot, ())
        return {other for other in found if other < number}

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
        return slot in self.kept or not numbers.issuperset(self.readers.get(slot, ()))
