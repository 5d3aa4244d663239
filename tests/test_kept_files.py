"""Damaged, forged and contested files: `tests.kept_files`, and its mutants."""

import os

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax.training import checkpoints
from minijax.training.checkpoints import read, restore, save
from tests import kept_files, mutants_files
from tests.commands import LONG

SEEDS = range(3000 if LONG else 150)


def test_damaged_files_are_refused():
    assert kept_files.damaged(SEEDS) == []


def test_many_threads_save_to_one_path(tmp_path):
    assert kept_files.at_once(4, tmp_path) == []


@pytest.mark.skipif(os.name != "posix", reason="there a file that is read stays")
def test_many_processes_save_to_one_path(tmp_path):
    assert kept_files.in_processes(4, tmp_path) == []


@pytest.mark.parametrize(
    "mutant", [mutants_files.unsealed_headers, mutants_files.unchecked_headers]
)
def test_headers_that_are_believed_are_found(mutant):
    with mutant():
        assert kept_files.damaged(SEEDS)


def test_a_draft_of_all_threads_is_found(tmp_path):
    with mutants_files.shared_drafts():
        assert kept_files.at_once(4, tmp_path)


def changed(file, old, new):
    """Change the JSON of a checkpoint, and leave the hash of the first line."""
    content = file.read_bytes()
    assert old in content
    file.write_bytes(content.replace(old, new))


def test_sizes_with_the_same_sum(tmp_path):
    file, tree = tmp_path / "run.ckpt", [np.arange(5.0), np.arange(2.0), np.arange(1)]
    save(file, tree)
    changed(file, b"[2], 16]", b"[2], 32]"), changed(file, b"[1], 8]", b"[1], -8]")
    with pytest.raises(ValueError, match=r"run\.ckpt is damaged: the 194 bytes"):
        restore(file, tree)
    content = file.read_bytes().partition(b"\n")[2]
    file.write_bytes(checkpoints._seal(content) + content)
    with pytest.raises(ValueError, match="does not describe the 64 bytes"):
        restore(file, tree)


def test_a_size_that_is_not_of_the_type(tmp_path):
    file, tree = tmp_path / "run.ckpt", [np.arange(2.0), np.arange(1.0)]
    save(file, tree)
    changed(file, b"[2], 16]", b"[2], 8]"), changed(file, b"[1], 8]", b"[1], 16]")
    content = file.read_bytes().partition(b"\n")[2]
    file.write_bytes(checkpoints._seal(content) + content)
    with pytest.raises(ValueError, match=r"at \[0\]: .* 8 bytes, where float64 .* 16"):
        restore(file, tree)


def test_files_of_the_first_format(tmp_path):
    file = tmp_path / "old.ckpt"
    file.write_bytes(b'{"format": "minijax checkpoint 1", "tree": "*"}\n')
    with pytest.raises(ValueError, match=r"old\.ckpt .* older 'minijax checkpoint 1'"):
        read(file)


def test_what_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="is no file"):
        read(tmp_path)
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "nothing")


class Twin:
    def __init__(self, number):
        self.number = number

    def __repr__(self):
        return "twin"

    def __lt__(self, other):
        return self.number < other.number


class Count(int):
    pass


class Loan:
    """It has a dtype, and NumPy can read it; nobody could make one again."""

    dtype = np.dtype("float32")

    def __array__(self, dtype=None, copy=None):
        return np.ones(2, dtype or self.dtype)


def test_what_restore_could_not_read_is_not_saved(tmp_path):
    tree = {Twin(1): 1.0, Twin(2): 2.0}
    with pytest.raises(ValueError, match=r"two leaves of the tree are at \[twin\]"):
        save(tmp_path / "run.ckpt", tree)
    for leaf in (Count(3), Loan(), np.rec.array([(1, 2)])):
        with pytest.raises(TypeError, match=r"at \['n'\] is a " + type(leaf).__name__):
            save(tmp_path / "run.ckpt", {"n": leaf})
    assert not os.listdir(tmp_path)


def test_a_tree_of_equal_paths_is_not_expected_either(tmp_path):
    save(tmp_path / "run.ckpt", {Twin(1): jnp.ones(2)})
    with pytest.raises(ValueError, match="two leaves"):
        restore(tmp_path / "run.ckpt", {Twin(1): jnp.ones(2), Twin(2): jnp.ones(2)})
