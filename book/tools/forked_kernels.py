"""Kernels of notebooks that are forked from one process, which has imported all.

    python -m pytest -p book.tools.forked_kernels --nbval chapters

A kernel of its own starts Python and imports ipykernel: half a second of work for each
of more than a hundred notebooks, and more on a busy machine. Here a server does so
once, and each kernel is a fork of it: fresh, with nothing of any notebook in it.
Jupyter calls what starts a kernel a provisioner: https://jupyter-client.readthedocs.io/en/stable/provisioning.html
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from importlib.metadata import EntryPoint

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

SERVE = "from book.tools.forked_kernels import serve; serve()"
NAME = "forked"


def serve():
    """Fork a kernel for each line that comes in; the kernel answers with its number."""
    from ipykernel.kernelapp import IPKernelApp

    sys.path[:] = [path for path in sys.path if path not in ("", *given(os.environ))]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a kernel ended
    for line in sys.stdin:
        if os.fork() == 0:
            become(IPKernelApp, **json.loads(line))


def given(environment):
    """Return the folders of PYTHONPATH, which differ from notebook to notebook."""
    paths = environment.get("PYTHONPATH", "").split(os.pathsep)
    return [path for path in paths if path]


def become(app, command, folder, environment):
    """Be a kernel from here on, in a session of its own, and never come back."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.write(1, f"{os.getpid()}\n".encode())
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = given(environment)
    sys.argv = command
    app.launch_instance(command[1:])
    os._exit(0)


class Forked:
    """What jupyter_client asks of a process, for one that isn't a child of this one.

    Attributes:
      pid: the number of the process.
    """

    stdin = stdout = stderr = None

    def __init__(self, pid):
        self.pid = pid

    def send_signal(self, number):
        """Send a signal to the kernel, which may be gone."""
        os.kill(self.pid, number)

    def poll(self):
        """Return None while the kernel is there, and 0 behind that."""
        try:
            return os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0

    def wait(self):
        """Wait until the kernel is gone."""
        while self.poll() is None:
            time.sleep(0.001)
        return 0

    def kill(self):
        """End the kernel at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self):
        """Ask the kernel to end."""
        self.send_signal(signal.SIGTERM)


class ForkedProvisioner(LocalProvisioner):
    """Start kernels as forks of one server."""

    server = None

    async def launch_kernel(self, cmd, *, cwd=None, env=None, **_):
        """Have a kernel forked, and return how it is reached.

        Args:
          cmd: the command that would start it; what follows `-m` is taken.
          cwd: its working directory, this process's if None.
          env: its environment variables.
        """
        self.cwd = pathlib.Path(cwd or pathlib.Path.cwd())
        order = {
            "command": cmd[cmd.index("-m") + 1 :],
            "folder": str(self.cwd),
            "environment": dict(env or os.environ),
        }
        server = self.started()
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        self.pid = self.pgid = int(server.stdout.readline())
        self.process = Forked(self.pid)
        return self.connection_info

    async def kill(self, restart=False):
        """End the kernel, and wait for that: who asks too early waits longer."""
        await super().kill(restart)
        if self.process:
            self.process.wait()

    @classmethod
    def started(cls):
        """Return the server of this process, started when it is first needed."""
        if cls.server is None:
            pipe = subprocess.PIPE
            cls.server = subprocess.Popen(
                [sys.executable, "-c", SERVE], stdin=pipe, stdout=pipe, text=True
            )
        return cls.server


def pytest_configure():
    """Have all kernels of this process forked, where a process can fork."""
    if not hasattr(os, "fork"):
        return
    place = f"{__name__}:{ForkedProvisioner.__name__}"
    group = KernelProvisionerFactory.GROUP_NAME
    factory = KernelProvisionerFactory.instance()
    factory.provisioners[NAME] = EntryPoint(NAME, place, group)
    factory.default_provisioner_name = NAME
