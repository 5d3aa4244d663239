# Made from chapters/35_device.md by `make chapter`;
# edit the chapter, not this file.
"""CUDA graphs: the launches of a program, recorded once and replayed by one call."""

from minijax.arrays.settings import config
from minijax.cuda.cublas import library_calls
from minijax.cuda.programs import CudaProgram

KEPT, SEEN = 8, 64


class GraphProgram(CudaProgram):
    """A program for a GPU that records calls which come again with the same memory.

    Attributes:
      graphs: from the addresses of a call to its graph, or to None at first.
    """

    def __init__(self, closed, name="program", donated=(), device=None):
        super().__init__(closed, name, donated, device)
        steps = [s for s in self.lowered.steps if type(s) not in library_calls]
        self.all_launched = all(id(step) in self.launches for step in steps)
        self.graphs = {}

    def start(self, memory):
        """Put the launches into the stream: as a graph, if they came before."""
        whole = self.all_launched and len(self.steps) > 1
        if not whole or config.minijax_wait_for_kernels:
            super().start(memory)
            return
        with self.card.lock:
            ends = tuple([data.address for data in memory.values()])
            replay(self, (memory.arena.address, *ends), memory)


def replay(program, key, memory):
    """Start a program whose call has these addresses: one by one, or as a graph."""
    graphs, known = program.graphs, key in program.graphs
    graph = graphs.pop(key, None)
    if known and graph is None:
        graph = program.card.record(lambda: CudaProgram.start(program, memory))
    graphs[key] = graph  # the latest stands last
    if graph is None:
        CudaProgram.start(program, memory)
    else:
        program.card.replay(graph, f"a graph of {program.name}{program.line}")
    recorded = [key for key in graphs if graphs[key] is not None]
    for old in [*recorded[:-KEPT], *[*graphs][:-SEEN]]:
        graphs.pop(old, None)
