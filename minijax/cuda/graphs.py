"""CUDA graphs: launches in sequence, recorded once and replayed by one call."""

# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.

from itertools import groupby

from minijax.arrays.settings import config
from minijax.cuda.turns import HandOver, launches_of

KEPT, SEEN = 8, 64


class Recorded:
    """Launches that are recorded if they come again with the same memory.

    Args:
      program: a `GraphProgram`.
      steps: those that the launches do.

    Attributes:
      graphs: from the addresses of a call to its graph, or to None at first.
      buffers: those whose addresses may be others in another call.
      hand_overs: those of the acts that change the memory, and not the card.
    """

    def __init__(self, program, steps):
        self.program, self.graphs = program, {}
        self.what = f"a graph of {program.name}{program.line}"
        self.acts = list(map(program.prepare, steps))
        pairs = zip(steps, self.acts)
        self.hand_overs = [act for step, act in pairs if type(step) is HandOver]
        used = dict.fromkeys([x for s in steps for x in (*s.reads, *s.writes)])
        self.buffers = [x for x in used if x not in program.offsets]

    def act(self, memory):
        """Put the launches into the stream, one by one."""
        for act in self.acts:
            act(memory)

    def __call__(self, memory):
        """Put the launches into the stream: as a graph, if they came before."""
        if config.minijax_wait_for_kernels:
            self.act(memory)
            return
        with self.program.card.lock:
            ends = [memory[x].address for x in self.buffers]
            replay(self, (memory.arena.address, *ends), memory)
        for act in self.hand_overs:  # no part of a graph, and needed by the host
            act(memory)


def replay(recorded, key, memory):
    """Start launches whose call has these addresses: one by one, or as a graph."""
    graphs, card, known = recorded.graphs, recorded.program.card, key in recorded.graphs
    graph = graphs.pop(key, None)
    if known and graph is None:
        graph = card.record(lambda: recorded.act(memory))
    graphs[key] = graph  # the latest stands last
    if graph is None:
        recorded.act(memory)
    else:
        card.replay(graph, recorded.what)
    if len(graphs) > KEPT:
        made = [key for key in graphs if graphs[key] is not None]
        for old in [*made[:-KEPT], *[*graphs][:-SEEN]]:
            graphs.pop(old, None)


def recorded_series(program, steps):
    """Return functions of the memory that do steps, whose launches are recorded."""
    found: list = []
    for alone, group in groupby(steps, lambda s: launches_of(program, s) is not None):
        part = [*group]
        counts = [launches_of(program, step) for step in part] if alone else [0]
        if sum(counts) > 1:
            found.append(Recorded(program, part))
        else:
            found += map(program.prepare, part)
    return found
