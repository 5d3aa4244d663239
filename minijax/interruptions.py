# Made from chapters/19d_calls.md by `make chapter`;
# edit the chapter, not this file.
"""What may happen in the middle of making machine code: Ctrl-C, a fork, the end."""

import atexit
import os
import signal
import threading
from contextlib import contextmanager
from functools import cache, partial

from minijax.remembering import caches


@contextmanager
def uninterrupted():
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


@cache
def guard_llvm():
    """Have a fork wait for LLVM, and the end of the process too.

    A lock that another thread holds during a fork stays locked in the new process,
    where nobody is left to release it; so the new process learns that it has one
    thread. At the end of a process the lock is kept: what LLVM works with is taken
    down then, and no other thread may be reading it.
    """
    from llvmlite.binding import ffi

    lock = getattr(ffi.lib, "_lock", None)
    if lock is not None:
        atexit.register(lock.__enter__)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget_other_threads)
        if lock is not None:
            release = partial(lock.__exit__, None, None, None)
            os.register_at_fork(
                before=lock.__enter__, after_in_parent=release, after_in_child=release
            )


def _forget_other_threads():
    for kept in caches:
        for once in kept.copy().values():
            once.unlock()
