"""Files of one's own: who could have changed them, and what is done in their place."""

import os
import stat
import threading
from types import SimpleNamespace

import pytest

from minijax.dispatch import private_files as own_files
from minijax.dispatch.private_files import (
    SECRET,
    Folder,
    UntrustedFile,
    cache_base_folder,
    has_private_group,
    is_owned_file,
    permission_fault,
    read_secret,
    user_id,
)

pytestmark = pytest.mark.skipif(user_id() is None, reason="folders of POSIX")
ME = 1000
HERE = {ME, 0}


def about(kind, mode, owner=ME, group=50):
    return SimpleNamespace(st_mode=kind | mode, st_uid=owner, st_gid=group)


@pytest.mark.parametrize(("mode", "owner", "fault"), [
    (0o700, ME, ""), (0o755, ME, ""), (0o755, 0, ""),
    (0o700, 1001, "belongs to user 1001"), (0o1777, 1001, "belongs to user 1001"),
    (0o777, ME, "mode 0777"), (0o757, 0, "mode 0757"), (0o702, ME, "mode 0702"),
    (0o775, ME, "mode 0775"), (0o720, 0, "mode 0720"), (0o2775, ME, "mode 2775"),
    (0o1777, 0, ""), (0o1777, ME, ""), (0o1770, ME, ""),
])  # fmt: skip
def test_who_can_change_a_folder(mode, owner, fault, monkeypatch):
    monkeypatch.setattr(own_files, "has_private_group", lambda about: False)
    found = permission_fault(about(stat.S_IFDIR, mode, owner), HERE)
    assert fault in found and bool(fault) == bool(found)


@pytest.mark.parametrize(("gid", "name", "members", "private"), [
    (50, "ada", [], True), (50, "ada", ["ada"], True), (50, "ada", ["bob"], False),
    (50, "ada", ["ada", "bob"], False), (50, "staff", [], False),
    (51, "ada", [], False), (None, "", [], False),
])  # fmt: skip
def test_a_group_of_ones_own(gid, name, members, private, monkeypatch):
    def group(number):
        if gid is None:
            raise KeyError(number)
        return SimpleNamespace(gr_gid=50, gr_name=name, gr_mem=members)

    owner = SimpleNamespace(pw_name="ada", pw_gid=gid)
    monkeypatch.setattr("pwd.getpwuid", lambda number: owner)
    monkeypatch.setattr("grp.getgrgid", group)
    folder = about(stat.S_IFDIR, 0o775)
    assert has_private_group(folder) is private
    assert bool(permission_fault(folder, HERE)) is not private
    assert permission_fault(
        about(stat.S_IFDIR, 0o777), HERE
    )  # others are more than the group


def test_what_is_a_file_of_ones_own(monkeypatch):
    monkeypatch.setattr(own_files, "user_id", lambda: ME)
    kinds = stat.S_IFDIR, stat.S_IFLNK, stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFCHR
    assert is_owned_file(about(stat.S_IFREG, 0o600))
    assert not is_owned_file(about(stat.S_IFREG, 0o600, owner=0))
    assert not any(is_owned_file(about(kind, 0o600)) for kind in kinds)


def test_folders_are_made_for_one_user(tmp_path):
    place = tmp_path / "a" / "b"
    mask = os.umask(0)
    try:
        with Folder(str(place)) as folder:
            folder.write("file", b"content")
    finally:
        os.umask(mask)
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (place, place.parent)]
    assert modes == [0o700] * 2
    assert stat.S_IMODE((place / "file").stat().st_mode) == 0o600


def test_the_folder_that_was_checked_is_the_one_that_is_used(tmp_path):
    place, other = tmp_path / "place", tmp_path / "other"
    with Folder(str(place)) as folder:
        place.rename(other)
        place.mkdir()
        folder.write("file", b"content")
        assert folder.read("file", 7) == b"content" and folder.names() == ["file"]
    assert not list(place.iterdir()) and (other / "file").exists()
    place.rmdir()
    place.symlink_to(other)
    with Folder(str(place)) as folder:
        assert folder.names() == ["file"]
    other.chmod(0o777)
    with pytest.raises(UntrustedFile, match="other can be written"):
        Folder(str(place))


def test_a_folder_is_looked_at_again_when_it_has_changed(tmp_path, monkeypatch):
    looked = []
    check = own_files.check_trusted
    monkeypatch.setattr(
        own_files, "check_trusted", lambda *a: looked.append(a) or check(*a)
    )
    place = str(tmp_path / "place")
    for _ in range(3):
        Folder(place).__exit__()
    assert len(looked) == 1
    os.chmod(place, 0o750)
    Folder(place).__exit__()
    assert len(looked) == 2


@pytest.mark.skipif(user_id() != 0, reason="only root gives files away")
def test_root_does_not_trust_users(tmp_path):
    (tmp_path / "home" / "place").mkdir(parents=True)
    (tmp_path / "home" / "place" / "file").write_text("of another")
    os.chown(tmp_path / "home" / "place" / "file", ME, ME)
    with Folder(str(tmp_path / "home" / "place")) as folder:
        with pytest.raises(UntrustedFile):
            folder.read("file", 100)
        folder.write("file", b"ours")
    assert (tmp_path / "home" / "place" / "file").read_text() == "of another"
    os.chown(tmp_path / "home", ME, ME)
    own_files._checked.clear()
    with pytest.raises(UntrustedFile, match="home belongs to user 1000"):
        Folder(str(tmp_path / "home" / "place"))


def test_a_folder_of_another_user(tmp_path, monkeypatch):
    mine = user_id()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 7)
    place = tmp_path / "place"
    place.mkdir()
    if mine:  # what belongs to root is trusted by everybody
        with pytest.raises(UntrustedFile, match=f"belongs to user {mine}"):
            Folder(str(place))
    (place / "file").write_text("of another")
    monkeypatch.setattr(own_files, "check_trusted", lambda *args: None)
    with Folder(str(place)) as folder, pytest.raises(UntrustedFile):
        folder.read("file", 100)


def test_files_that_are_too_long(tmp_path):
    with Folder(str(tmp_path)) as folder:
        folder.write("file", b"12345")
        assert folder.read("file", 5) == b"12345" and folder.read("file", 5, 2) == b"12"
        with pytest.raises(UntrustedFile):
            folder.read("file", 4)


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_is_no_file_stays(tmp_path, kind):
    path, target = tmp_path / "file", tmp_path / "target"
    target.write_text("content")
    {
        "folder": path.mkdir,
        "link": lambda: path.symlink_to(target),
        "pipe": lambda: os.mkfifo(path),
    }[kind]()
    before = path.lstat()
    with Folder(str(tmp_path)) as folder:
        folder.write("file", b"new")
        with pytest.raises(OSError):
            folder.read("file", 100)
    assert os.path.samestat(before, path.lstat())
    assert target.read_text() == "content" and len(list(tmp_path.iterdir())) == 2


def test_the_first_secret_stays(tmp_path):
    found = read_secret(str(tmp_path))
    read_secret.cache_clear()
    assert len(found) == 32 and read_secret(str(tmp_path)) == found
    with Folder(str(tmp_path)) as folder:
        folder.write(SECRET, bytes(32), own_files.claim)
    read_secret.cache_clear()
    assert read_secret(str(tmp_path)) == found and os.listdir(tmp_path) == [SECRET]


@pytest.mark.parametrize("links", [True, False])
def test_many_threads_and_one_secret(tmp_path, links, monkeypatch):
    def no_links(*args, **names):
        raise PermissionError

    if not links:
        monkeypatch.setattr(os, "link", no_links)
    found: list = []
    work = read_secret.__wrapped__
    calls = [lambda: found.append(work(str(tmp_path)))] * 8
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and work(str(tmp_path)) in found
    assert os.listdir(tmp_path) == [SECRET]
    assert not links or len(set(found)) == 1


@pytest.mark.parametrize("content", [b"", b"short", bytes(33)])
def test_secrets_of_another_length(tmp_path, content):
    (tmp_path / SECRET).write_bytes(content)
    (tmp_path / SECRET).chmod(0o600)
    for _ in range(2):
        with pytest.raises(UntrustedFile, match=SECRET):
            read_secret(str(tmp_path))
    assert (tmp_path / SECRET).read_bytes() == content


def test_where_folders_are(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    home = str(tmp_path / ".local" / "state")
    assert cache_base_folder("XDG_STATE_HOME", ".local", "state") == home
    for named, where in ("", home), ("relative", home), ("/elsewhere", "/elsewhere"):
        monkeypatch.setenv("XDG_STATE_HOME", named)
        assert cache_base_folder("XDG_STATE_HOME", ".local", "state") == where
