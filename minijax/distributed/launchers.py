"""Launchers of parallel jobs, and what ends all processes when one of them fails.

Reference: the cluster environments of ``jax.distributed``.
"""

# Made from chapters/37_machines_ground.md by `make chapter`;
# edit the chapter, not this file.

import sys
import threading
import traceback
from time import monotonic
from typing import Any, NamedTuple

# Launchers of parallel jobs, and the MPI library that belongs to one.

PIP = 'pip install "mpi4py>=4.1,<5" "mpich>=5"'


class Launcher(NamedTuple):
    """What has started this process.

    Attributes:
      name: of the launcher.
      variable: of the environment, which told.
      size: how many processes it has started, or None if it does not say.
      rank: the number of this one.
    """

    name: str
    variable: str
    size: int | None
    rank: int


# Name, variables with the number of processes and of this one, and one that has to be
# there as well.
_KNOWN = [
    ("Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", None),
    ("MPICH", "PMI_SIZE", "PMI_RANK", None),
    ("Slurm", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_STEP_ID"),
    ("PMIx", None, "PMIX_RANK", None),
]


def detect_launcher(environ) -> Launcher | None:
    """Return the launcher that an environment tells of, or None."""
    for name, size, rank, needed in _KNOWN:
        if rank in environ and (needed is None or needed in environ):
            count = int(environ[size]) if size in environ else None
            return Launcher(name, size or rank, count, int(environ[rank]))
    return None


def load_mpi(launcher: Launcher) -> Any:
    """Return the module ``mpi4py.MPI``, if it belongs to the launcher.

    Raises:
      RuntimeError: if it is not there, has no library, or has that of another launcher.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(
            f"The launcher of {launcher.name} has started this process "
            f"({launcher.variable} is set), but there is no MPI to talk with the "
            f"others: {error}. It is installed by: {PIP}"
        ) from error
    library = MPI.Get_library_version().split("\\n")[0].strip("\\0 ")
    check_agreement(launcher, MPI.COMM_WORLD.size, library)
    return MPI


def check_agreement(launcher: Launcher, size: int, library: str) -> None:
    """Raise unless a library sees as many processes as the launcher has started.

    Raises:
      RuntimeError: if they are two that do not know of each other.
    """
    alone = size == 1 and launcher.rank > 0
    if alone or launcher.size not in (None, size):
        started = launcher.size or f"more than {launcher.rank}"
        raise RuntimeError(
            f"The launcher of {launcher.name} has started {started} processes "
            f"({launcher.variable}), but mpi4py has loaded {library!r}, which sees "
            f"{size}: launcher and library are of two kinds of MPI. Start with the "
            "mpiexec that was installed with the library, in the same environment."
        )


# What ends all processes of a job when one of them fails: a hook and a watchdog.

WARNING_SECONDS = 20.0  # seconds


class Watchdog:
    """Watches what this process waits for.

    Args:
      rank, size: the number of this process, and how many there are.
      limit: called to know how many seconds a process may wait.
      end: called to end all processes.
      notes: sends and receives what other watches are to know, or None.

    Attributes:
      waiting: since when the process waits, and for what; or None.
      count: how many exchanges there were.
      seconds: how long the process has waited, in all.
    """

    def __init__(self, rank, size, limit, end, notes=None):
        self.rank, self.size, self.limit = rank, size, limit
        self.end, self.notes = end, notes
        self.waiting, self.count, self.seconds = None, 0, 0.0
        self._told: tuple | None = None
        self._heard: dict[int, int] = {}
        self._stop = threading.Event()

    def __call__(self, label, action, *args):
        """Return what an action returns, which waits for other processes."""
        self.count += 1
        start = monotonic()
        self.waiting = start, label
        try:
            return action(*args)
        finally:
            self.waiting = None
            self.seconds += monotonic() - start

    def start(self, interval=0.2):
        """Watch from now on, in a thread; look each `interval` seconds."""
        threading.Thread(target=self._run, args=(interval,), daemon=True).start()
        return self

    def stop(self):
        """Watch no more."""
        self._stop.set()

    def _run(self, interval):
        while not self._stop.wait(interval):
            try:
                self.look(monotonic())
            except Exception:
                traceback.print_exc()
                self.end()

    def look(self, now):
        """Warn, or end all, if the process has waited for too long."""
        waiting, limit = self.waiting, self.limit()
        if self.notes is not None:
            self.hear(self.notes.received(), waiting)
        if waiting is None:
            return
        since, label = waiting
        if now - since > min(WARNING_SECONDS, limit / 2) and self._told != waiting:
            self._told = waiting
            self._say(f"{label} has waited for {now - since:.0f} s.")
            if self.notes is not None:
                self.notes.send((self.count, label))
        if now - since > limit:
            self._say(self.missing_ranks(label, limit))
            self.end()

    def hear(self, notes, waiting):
        """Keep the numbers in notes of others; say if they wait for another thing."""
        for rank, (count, label) in notes.items():
            self._heard[rank] = count
            if waiting is not None and label != waiting[1]:
                self._say(f"rank {rank} waits for {label}.")

    def missing_ranks(self, label, limit):
        """Return the message that some processes have not come."""
        arrived = {rank for rank, count in self._heard.items() if count >= self.count}
        arrived.add(self.rank)
        absent = [str(rank) for rank in range(self.size) if rank not in arrived]
        which = "rank" if len(absent) == 1 else "ranks"
        names = f"{which} {', '.join(absent)} missing" if absent else "all waiting"
        return (
            f"TimeoutError: {label} waited {limit:g} s; {len(arrived)} of {self.size} "
            f"ranks arrived; {names}. A rank that takes longer needs "
            "MINIJAX_COLLECTIVE_TIMEOUT; one that never comes has taken another way "
            "through the program."
        )

    def _say(self, text):
        print(f"minijax, rank {self.rank}: {text}", file=sys.stderr, flush=True)


class WatchdogMessages:
    """Numbers and labels that watches send to each other, by MPI.

    Args:
      comm: a communicator of their own.
    """

    def __init__(self, comm):
        self.comm, self.sent = comm, []

    def send(self, note):
        """Send a note to all others."""
        others = [rank for rank in range(self.comm.size) if rank != self.comm.rank]
        self.sent = [self.comm.isend(note, rank) for rank in others]

    def received(self):
        """Return a dictionary from ranks to the latest notes that have arrived."""
        found = {}
        for rank in range(self.comm.size):
            while rank != self.comm.rank and self.comm.iprobe(rank):
                found[rank] = self.comm.recv(source=rank)
        return found


def abort_on_error(end: Any) -> None:
    """Let an error that nothing catches end all processes, after its traceback."""
    before = sys.excepthook

    def hook(kind, error, trace):
        before(kind, error, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        end()

    sys.excepthook = hook
