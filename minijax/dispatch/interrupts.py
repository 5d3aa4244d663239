"""What may happen in the middle of making machine code: Ctrl-C, a fork, the end."""

# Made from chapters/26_calls_ground.md by `make chapter`;
# edit the chapter, not this file.

import atexit
import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress

from minijax.llvm.compiler import asking
from minijax.rematerialization.caching import all_caches


@contextmanager
def defer_interrupts():
    """Let Ctrl-C wait for the end of a block, so that no lock is left behind in it."""
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGINT) if main else None
    if before is None:  # other threads are not interrupted anyway
        yield
        return
    waiting: list = []
    signal.signal(signal.SIGINT, lambda *args: waiting.append(args))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if waiting:
            signal.raise_signal(signal.SIGINT)


# A lock of LLVM that stays locked would stop the other threads for ever.
asking.value = defer_interrupts


_held: dict = {}  # locks, by the threads that fork


def hold_llvm():
    """Wait until no other thread is inside of LLVM, and let none in.

    A lock that another thread holds during a fork stays locked in the new process,
    where no thread is left to release it; and at the end of a process, what LLVM works
    with is taken down. A thread that still imports llvmlite holds a lock as well.
    """
    with suppress(ImportError, AttributeError):  # it is the import that forks
        if "llvmlite" in sys.modules:
            from llvmlite.binding import ffi

            ffi.lib._lock.__enter__()
            _held[threading.get_ident()] = ffi.lib._lock


def release_llvm():
    """Let other threads into LLVM again."""
    lock = _held.pop(threading.get_ident(), None)
    if lock is not None:
        lock.__exit__(None, None, None)


def _go_on_alone():
    release_llvm()
    for kept in all_caches:
        for once in kept.copy().values():
            once.unlock()


def hold_at_the_end():
    """Keep LLVM for good, if this is the end: exit functions may be run by hand."""
    if not threading.main_thread().is_alive():
        hold_llvm()


atexit.register(hold_at_the_end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=hold_llvm, after_in_parent=release_llvm, after_in_child=_go_on_alone
    )
