"""Launchers of parallel jobs, and the MPI library that belongs to one.

Reference: the cluster environments of ``jax.distributed``.
"""

# Made from chapters/37_machines_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import Any, NamedTuple

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


def find_launcher(environ) -> Launcher | None:
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
