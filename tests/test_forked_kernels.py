"""Kernels that notebooks are checked in: forks of one process that share nothing."""

import os

import pytest
from jupyter_client.manager import KernelManager
from jupyter_client.provisioning import KernelProvisionerFactory

from book.tools.forked_kernels import ForkedProvisioner, pytest_configure

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start forked kernels, and end all of them behind the test."""
    factory = KernelProvisionerFactory.instance()
    usual = factory.default_provisioner_name
    monkeypatch.setattr(factory, "default_provisioner_name", usual)
    pytest_configure()
    running = []

    def started(**environment):
        manager = KernelManager(kernel_name="python3")
        manager.start_kernel(cwd=str(tmp_path), env={**os.environ, **environment})
        client = manager.client()
        running.append((manager, client))
        client.start_channels()
        client.wait_for_ready(timeout=60)
        return manager, client

    yield started
    for manager, client in running:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    ForkedProvisioner.server.stdin.close()
    ForkedProvisioner.server.stdout.close()
    ForkedProvisioner.server.wait()
    ForkedProvisioner.server = None


def said(client, code):
    """Return what a cell prints, or the name of its error."""
    texts = []

    def hook(message):
        content = message["content"]
        texts.append(content.get("text") or content.get("ename") or "")

    reply = client.execute_interactive(code, timeout=60, output_hook=hook)
    if reply["content"]["status"] == "aborted":  # right after an error it drops cells
        return said(client, code)
    return "".join(texts).strip()


def test_two_kernels_share_nothing(start, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "found_there.py").write_text("here = 1")
    _, first = start(ONLY="first")
    _, second = start(ONLY="second", PYTHONPATH=str(tmp_path / "folder"))
    said(first, "import json as minijax, sys, os; sys.modules['minijax'] = minijax")
    said(second, "import sys, os")
    where = "print(os.getcwd(), os.environ['ONLY'], 'minijax' in sys.modules)"
    assert said(first, where) == f"{tmp_path} first True"
    assert said(second, where) == f"{tmp_path} second False"
    assert said(second, "import found_there; print(found_there.here)") == "1"
    assert said(first, "import found_there") == "ModuleNotFoundError"


def test_a_kernel_is_interrupted_and_ended(start):
    manager, client = start()
    pid = int(said(client, "import os; print(os.getpid())"))
    asked = client.execute("import time; print('here'); time.sleep(60)")
    while "here" not in client.get_iopub_msg(timeout=60)["content"].get("text", ""):
        pass
    manager.interrupt_kernel()
    reply = client.get_shell_msg(timeout=30)
    while reply["parent_header"].get("msg_id") != asked:
        reply = client.get_shell_msg(timeout=30)
    assert reply["content"]["ename"] == "KeyboardInterrupt"
    assert said(client, "print('alive')") == "alive"
    manager.shutdown_kernel(now=True)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
