"""Layered layout of a directed acyclic graph: ranks, crossings, positions.

Ranks by longest path; edges that span ranks get a waypoint in each; a few barycentre
sweeps take out crossings (Sugiyama, Tagawa and Toda, 1981); positions in a rank are the
least-squares fit to the neighbours' that keeps order and distance.
"""


def ranks(count, edges, least=None):
    """Rank of each node 0..count-1: the longest path that leads to it.

    `edges` are (source, target) pairs with source < target; `least` gives ranks to
    start from.
    """
    rank = list(least or [0] * count)
    for source, target in sorted(edges, key=lambda edge: edge[1]):
        rank[target] = max(rank[target], rank[source] + 1)
    return rank


def spread(wanted, gaps):
    """Positions nearest to `wanted` with `gaps[i]` or more between i and i + 1.

    Pool adjacent violators: blocks of neighbours that would collide move as one.
    """
    offsets = [0.0]
    for gap in gaps:
        offsets.append(offsets[-1] + gap)
    blocks = []
    for want, offset in zip(wanted, offsets, strict=True):
        total, size = want - offset, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / size:
            more, many = blocks.pop()
            total, size = total + more, size + many
        blocks.append((total, size))
    starts = [total / size for total, size in blocks for _ in range(size)]
    return [start + offset for start, offset in zip(starts, offsets, strict=True)]


class Layout:
    """Positions for nodes of given widths joined by edges.

    Afterwards `x[i]` is the centre and `rank[i]` the rank of node i, `chains[k]` the
    nodes (ends and waypoints) through which edge k passes, and `layers` the nodes of
    each rank from left to right. Waypoints are numbered after the nodes. The nodes of
    the ranks in `still` keep the order in which they were given.
    """

    def __init__(self, widths, edges, rank=None, gap=22, still=()):
        self.widths, self.gap, self.still = list(widths), gap, still
        self.real = len(self.widths)
        self.rank = list(ranks(len(self.widths), edges) if rank is None else rank)
        self.chains = [self._chain(*edge) for edge in edges]
        self.above = [[] for _ in self.widths]
        self.below = [[] for _ in self.widths]
        for chain in self.chains:
            for upper, lower in zip(chain, chain[1:], strict=False):
                self.below[upper].append(lower)
                self.above[lower].append(upper)
        self.layers = [[] for _ in range(max(self.rank, default=-1) + 1)]
        for node, level in enumerate(self.rank):
            self.layers[level].append(node)
        self._order()
        self._position()

    def _chain(self, source, target):
        chain = [source]
        for level in range(self.rank[source] + 1, self.rank[target]):
            self.widths.append(4)
            self.rank.append(level)
            chain.append(len(self.widths) - 1)
        return [*chain, target]

    def _order(self, sweeps=8):
        place = {n: k for layer in self.layers for k, n in enumerate(layer)}

        def middle(node, links):
            near = [place[m] for m in links[node]] or [place[node]]
            return sum(near) / len(near), place[node]

        moving = [n for k, n in enumerate(self.layers) if k not in self.still]
        for sweep in range(sweeps):
            links = self.below if sweep % 2 else self.above
            for layer in reversed(moving) if sweep % 2 else moving:
                layer.sort(key=lambda n, links=links: middle(n, links))
                place.update((n, k) for k, n in enumerate(layer))

    def _gaps(self, layer):
        pairs = zip(layer, layer[1:], strict=False)
        return [(self.widths[a] + self.widths[b]) / 2 + self.gap for a, b in pairs]

    def _position(self, sweeps=24):
        self.x = [0.0] * len(self.widths)
        for layer in self.layers:
            centred = spread([0.0] * len(layer), self._gaps(layer))
            for node, x in zip(layer, centred, strict=True):
                self.x[node] = x
        for sweep in range(sweeps):
            for layer in self.layers if sweep % 2 == 0 else reversed(self.layers):
                wanted = [self._pull(node) for node in layer]
                placed = spread(wanted, self._gaps(layer))
                for node, x in zip(layer, placed, strict=True):
                    self.x[node] = x
        halves = [w / 2 for w in self.widths]
        left = min((x - h for x, h in zip(self.x, halves, strict=True)), default=0)
        self.x = [x - left for x in self.x]

    def _pull(self, node):
        """Where a node wants to be; waypoints follow each other, for straight edges."""
        near = self.above[node] + self.below[node]
        way = node >= self.real
        weights = [6 if way and n >= self.real else 1 for n in near]
        total = sum(w * self.x[n] for w, n in zip(weights, near, strict=True))
        return total / sum(weights) if near else self.x[node]

    def width(self):
        """Total width of the drawing."""
        ends = (x + w / 2 for x, w in zip(self.x, self.widths, strict=True))
        return max(ends, default=0)
