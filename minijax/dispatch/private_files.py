"""Files that only this user can have written, in folders that others cannot change.

On Windows, where folders have no owners and modes that Python could ask for, only the
files are looked at.

Reference: https://specifications.freedesktop.org/basedir-spec (where folders are).
"""

# Made from chapters/26_calls_ground.md by `make chapter`;
# edit the chapter, not this file.

import os
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

SECRET = "secret"
TEMPORARY_SUFFIX = ".draft"
CAREFUL = 0  # follow no link, wait for no pipe, and take the bytes as they are
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"):
    CAREFUL |= getattr(os, _flag, 0)


class UntrustedFile(PermissionError):
    """Others may have written what is in a file, or in a folder."""


def cache_base_folder(variable, *below):
    """Return the folder that a variable of the environment names, or one below home.

    Raises:
      OSError: if there is no home.
    """
    named, home = os.environ.get(variable, ""), os.path.expanduser("~")
    if os.path.isabs(named):
        return named
    if os.path.isabs(home):
        return os.path.join(home, *below)
    raise FileNotFoundError(f"there is no home folder, and no {variable}")


def user_id():
    """Return the number of the user whose process this is; None on Windows."""
    return os.geteuid() if hasattr(os, "geteuid") else None


def is_owned_file(about):
    """Return whether a thing on the disk is a file, a regular one, of this user."""
    return stat.S_ISREG(about.st_mode) and user_id() in (None, about.st_uid)


def has_private_group(about):
    """Return whether the group of a file has no other member than the owner.

    Many systems give each user such a group, and let it write.
    """
    with suppress(ImportError, KeyError):
        import grp
        import pwd

        owner, group = pwd.getpwuid(about.st_uid), grp.getgrgid(about.st_gid)
        same = (owner.pw_gid, owner.pw_name) == (group.gr_gid, group.gr_name)
        return same and {*group.gr_mem} <= {owner.pw_name}
    return False


def permission_fault(about, trusted):
    """Return how others can change what is in a folder; "" if they cannot.

    In a folder with the sticky bit, each user can change what is theirs.
    """
    if about.st_uid not in trusted:
        return f"belongs to user {about.st_uid}"
    others = about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not others or about.st_mode & stat.S_ISVTX:
        return ""
    if others == stat.S_IWGRP and has_private_group(about):
        return ""
    mode = stat.S_IMODE(about.st_mode)
    return f"can be written by others (mode {mode:04o}; `chmod go-w` mends that)"


def check_trusted(path, about):
    """Raise `UntrustedFile` if others can change what is in a folder, which is open.

    Who can write in a folder above it can put another in its place. Besides the user,
    root is trusted, and who owns the root of the files: in a container, that is root
    under another number.
    """
    real = Path(os.path.realpath(path))
    trusted = {user_id(), 0, os.stat(os.sep).st_uid}
    for place in (*reversed(real.parents), real):
        last = os.lstat(place)
        fault = permission_fault(last, trusted)
        if fault:
            raise UntrustedFile(f"{place} {fault}")
    if not os.path.samestat(last, about):
        raise UntrustedFile(f"{path} was changed while it was looked at")


def make_private_folder(path):
    """Make a folder, and those above it, into which others cannot look."""
    if not os.path.isdir(path):
        above = os.path.dirname(path)
        if above != path:
            make_private_folder(above)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)


_checked: dict = {}  # what folders were when they were checked, by their paths


def open_trusted_folder(path):
    """Return a handle of a folder that others cannot change.

    Raises:
      NotOwn: if they can.
      OSError: if the folder cannot be made or opened.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        make_private_folder(os.path.abspath(path))
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        about = os.fstat(handle)
        seen = user_id(), about.st_dev, about.st_ino, about.st_uid, about.st_mode
        if _checked.get(path) != seen:
            check_trusted(path, about)
            _checked[path] = seen
    except BaseException:
        os.close(handle)
        raise
    return handle


class Folder:
    """A folder that others cannot change, open: a context manager.

    What is done in it is done in the folder that was checked, even if another has
    its name by then.

    Args:
      path: of the folder, which is made if it is not there.

    Attributes:
      path: the same.
      handle: of the open folder; None on Windows.

    Raises:
      NotOwn: if others can write in it, or in one above it.
      OSError: if it cannot be made or opened.
    """

    def __init__(self, path):
        self.path, self.handle = path, None
        if user_id() is None:
            make_private_folder(os.path.abspath(path))
        else:
            self.handle = open_trusted_folder(path)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.handle is not None:
            os.close(self.handle)

    def at(self, name):
        """Return where a file is, as arguments of the functions of `os`."""
        if self.handle is None:
            return {"path": os.path.join(self.path, name)}
        return {"path": name, "dir_fd": self.handle}

    def names(self):
        """Return the names of all that is in the folder."""
        return os.listdir(self.path if self.handle is None else self.handle)

    def stat(self, name):
        """Return what `os.stat` knows of a file, or of a link itself."""
        return os.stat(follow_symlinks=False, **self.at(name))

    def read(self, name, most, count=None):
        """Return what a file says: all of it, or `count` bytes.

        Raises:
          NotOwn: if it is no regular file of this user, or has more than `most` bytes.
          OSError: if it cannot be read.
        """
        handle = os.open(flags=os.O_RDONLY | CAREFUL, **self.at(name))
        try:
            about = os.fstat(handle)
            if not is_owned_file(about) or about.st_size > most:
                raise UntrustedFile(
                    f"{os.path.join(self.path, name)} is no file of ours"
                )
            return os.read(handle, about.st_size if count is None else count)
        finally:
            os.close(handle)

    def write(self, name, content, place=None):
        """Write a file that no other user can read, all of it or nothing.

        Args:
          name: of the file. If something else than a file of this user has it, it is
            left alone.
          content: bytes.
          place: a function of the folder and two names that gives a file the second
            one, once it is whole on the disk; by default the older file is replaced.
        """
        draft = f"{name}.{os.urandom(8).hex()}{TEMPORARY_SUFFIX}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | CAREFUL
        handle = os.open(flags=flags, mode=0o600, **self.at(draft))
        try:
            with open(handle, "wb") as file:
                file.write(content)
                if place is not None:
                    file.flush()
                    os.fsync(handle)
            (place or replace)(self, draft, name)
        finally:
            with suppress(OSError):  # it has its name already
                os.unlink(**self.at(draft))


def pair(folder, draft, name):
    """Return two names of files as arguments of `os.replace` or `os.link`."""
    where = {"src": folder.at(draft)["path"], "dst": folder.at(name)["path"]}
    if folder.handle is None:
        return where
    return where | {"src_dir_fd": folder.handle, "dst_dir_fd": folder.handle}


def replace(folder, draft, name):
    """Give a draft its name, which may have belonged to an older file of this user."""
    with suppress(FileNotFoundError):
        if not is_owned_file(folder.stat(name)):
            return
    os.replace(**pair(folder, draft, name))


def claim(folder, draft, name):
    """Give a draft its name, unless another process was faster."""
    try:
        os.link(**pair(folder, draft, name))
    except FileExistsError:
        pass
    except OSError:  # some disks know no links: there the last process wins
        replace(folder, draft, name)


@cache
def read_secret(path):
    """Return 32 random bytes that are kept in a folder, and that no other user knows.

    Of processes that make them at the same time, all get the same ones.

    Raises:
      NotOwn: if others could have read or written them.
      OSError: if they cannot be read or written.
    """
    with Folder(path) as folder:
        if SECRET not in folder.names():
            folder.write(SECRET, os.urandom(32), claim)
        mode, found = folder.stat(SECRET).st_mode, folder.read(SECRET, 32)
    if user_id() is not None and stat.S_IMODE(mode) & 0o077 or len(found) < 32:
        file = os.path.join(path, SECRET)
        raise UntrustedFile(f"{file} is damaged, or others can read it; delete it")
    return found
