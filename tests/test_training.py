"""Layers, optimizers and checkpoints: what they refuse, and what a crash leaves."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import random
from minijax.example_libraries import optimizers, stax
from minijax.training.checkpoints import read, restore, save

EXAMPLE = Path(__file__).parents[1] / "examples" / "conv_digits.py"


def tree():
    return {
        "layers": [
            {"w": jnp.arange(6, dtype="bfloat16").reshape(2, 3), "b": jnp.ones(3)},
            {"w": jnp.zeros((0, 3)), "b": jnp.array(1 + 2j)},
        ],
        "key": random.split(random.key(3), 2),
        "old key": random.PRNGKey(7),
        "step": 41,
        "rate": 0.1,
        "done": False,
        "counts": np.arange(3, dtype=">i8"),
        "last": np.float16(2.5),
        "none": None,
    }


def test_a_tree_comes_back_as_it_was(tmp_path):
    given, file = tree(), tmp_path / "run.ckpt"
    save(file, given)
    found = restore(file, minijax.tree.map(lambda x: x, given))
    leaves = minijax.tree_util.tree_leaves_with_path
    for (path, x), (_, y) in zip(leaves(given), leaves(found), strict=True):
        assert type(x) is type(y), path
        if path[0].key == "key":
            assert x.dtype == y.dtype
            x, y = random.key_data(x), random.key_data(y)
        assert np.asarray(x).dtype.newbyteorder("=") == np.asarray(y).dtype, path
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))
    assert os.listdir(tmp_path) == ["run.ckpt"]
    assert "'layers'" in json.loads(file.read_bytes().split(b"\n")[1])["tree"]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda t: t["layers"][0].update(w=jnp.ones((3, 2))),
         r"\['w'\]: the file has bfloat16\[2,3\], expected is float32\[3,2\]"),
        (lambda t: t["layers"].pop(), r"at \['layers'\]\[1\]\['b'\]: the file has a "),
        (lambda t: t.update(more=1.0), r"at \['more'\]: the file has no such leaf"),
        (lambda t: t.update(step=np.int32(0)), r"at \['step'\]: the file has int\[\]"),
        (lambda t: t.update(key=random.key(0)), r"at \['key'\]: .*key<fry>\[2,2\]"),
    ],
)  # fmt: skip
def test_another_tree_is_told_with_its_path(tmp_path, change, told):
    save(tmp_path / "run.ckpt", tree())
    other = tree()
    change(other)
    with pytest.raises(ValueError, match=told):
        restore(tmp_path / "run.ckpt", other)


def test_what_cannot_be_written_leaves_the_old_file(tmp_path):
    file = tmp_path / "run.ckpt"
    save(file, [1, 2])
    with pytest.raises(TypeError, match=r"the leaf at \[1\] is a str"):
        save(file, [3, "four"])
    with pytest.raises(TypeError, match=r"the leaf at the top is a object"):
        save(file, object())
    assert restore(file, [0, 0]) == [1, 2] and os.listdir(tmp_path) == ["run.ckpt"]


@pytest.mark.parametrize(
    "leaf", [2**63, -(2**63) - 1, np.ma.array([1, 2], mask=[0, 1])]
)
def test_what_would_come_back_as_something_else_is_refused(tmp_path, leaf):
    told = rf"without masks, .* 64 bits; the leaf at \['n'\] is a {type(leaf).__name__}"
    with pytest.raises(TypeError, match=told):
        save(tmp_path / "run.ckpt", {"n": leaf})
    assert not os.listdir(tmp_path)


def back(tmp_path, given, like=None):
    save(tmp_path / "run.ckpt", given)
    return restore(tmp_path / "run.ckpt", given if like is None else like)


def test_the_ends_of_64_bits_come_back(tmp_path):
    ends = [2**63 - 1, -(2**63), np.uint64(2**64 - 1)]
    assert back(tmp_path, ends, [0, 0, np.uint64(0)]) == ends


def test_weak_arrays_come_back_weak(tmp_path):
    weak = jnp.asarray(0.1)
    for x in (weak, weak.astype("float32")):
        found = back(tmp_path, x)
        assert found.weak_type == x.weak_type
        assert (found * jnp.ones(2, "float16")).dtype == (
            jnp.ones(2, "float16") * x
        ).dtype


def test_arrays_come_back_where_they_were(tmp_path):
    first, *_, last = minijax.devices()
    assert first is not last
    for where in (first, last):
        at = minijax.device_put([jnp.arange(3.0), random.key(2)], where)
        for x in back(tmp_path, at):
            assert x.devices() == {where} and x.committed
    assert not back(tmp_path, jnp.arange(3.0)).committed


def test_64_bits_come_back_without_the_switch(tmp_path):
    mesh = minijax.make_mesh((2,), ("i",))
    halves = minijax.sharding.NamedSharding(mesh, minijax.P("i"))
    with minijax.enable_x64():
        whole = [jnp.arange(4) + 2**40, jnp.arange(4) / 3]
        given = [*whole, *minijax.device_put(whole, halves)]
    for x, y in zip(given, back(tmp_path, given), strict=True):
        assert x.dtype == y.dtype and x.sharding == y.sharding
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_tangents_of_integers_come_back(tmp_path):
    nothing = np.zeros((2, 3), minijax.dtypes.float0)
    found = back(tmp_path, [nothing, minijax.jit(lambda: nothing)()])
    assert [(x.shape, x.dtype) for x in found] == [((2, 3), nothing.dtype)] * 2


@pytest.mark.parametrize("size", [0, 10, -4])
def test_a_file_that_is_cut_short(tmp_path, size):
    file = tmp_path / "run.ckpt"
    save(file, jnp.arange(4.0))
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(ValueError, match="damaged" if size < 0 else "no file of"):
        restore(file, jnp.zeros(4))


def test_a_byte_that_has_changed(tmp_path):
    file = tmp_path / "run.ckpt"
    save(file, jnp.arange(4.0))
    data = bytearray(file.read_bytes())
    data[-2] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueError, match="damaged"):
        read(file)
    file.write_bytes(b'{"format": "another"}\n')
    with pytest.raises(ValueError, match="no file of the format"):
        read(file)


# Steps with a checkpoint after every fourth. The number of a write says which one dies:
# all its bytes are in the draft, which has not yet taken the place of the file.
RUN = """
import os, runpy, signal, sys
import minijax.training.checkpoints
example, file, log, dies = sys.argv[1:]
writes, sync = [], os.fsync
def killed(descriptor):
    writes.append(descriptor)
    if len(writes) == int(dies):
        os.kill(os.getpid(), signal.SIGKILL)
    sync(descriptor)
os.fsync = killed
names = runpy.run_path(example)
names["train"](14, 1, file, 4, log, bar=lambda items, desc: items)
"""


def run(folder, name, dies):
    done = subprocess.run(
        [sys.executable, "-c", RUN, EXAMPLE, folder / f"{name}.ckpt",
         folder / f"{name}.log", str(dies)],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    lines = (folder / f"{name}.log").read_text().split("\n")[:-1]
    return done, [line.split() for line in lines]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_run_that_was_killed_goes_on_with_the_same_losses(tmp_path):
    pytest.importorskip("tqdm")
    done, whole = run(tmp_path, "whole", 0)
    assert done.returncode == 0, done.stderr
    assert len(whole) == 14 and len({loss for _, loss in whole}) == 14
    done, begun = run(tmp_path, "killed", 2)
    assert done.returncode == -9 and begun == whole[:8]
    header, _ = read(tmp_path / "killed.ckpt")
    assert len(header["leaves"]) == 1 + 3 * 8
    done, both = run(tmp_path, "killed", 0)
    assert done.returncode == 0, done.stderr
    assert both[8:] == whole[4:]


def test_gradients_of_another_tree_are_told_with_their_path():
    made = optimizers.adam(0.1)
    state = made.init_fn({"a": jnp.ones(3), "b": [jnp.ones(2)]})
    with pytest.raises(TypeError, match=r"gradients\['b'\]: expected a list of leng"):
        made.update_fn(0, {"a": jnp.ones(3), "b": []}, state)
    with pytest.raises(TypeError, match=r"at \['b'\]\[0\] changed the shapes"):
        made.update_fn(0, {"a": jnp.ones(3), "b": [jnp.ones((2, 2))]}, state)
    with pytest.raises(TypeError, match="a step size is a number"):
        optimizers.sgd(jnp.ones(2))
    with pytest.raises(ValueError, match="of values one more"):
        optimizers.piecewise_constant([1], [1.0])
    with pytest.raises(TypeError, match="leaf 0 is a float"):
        optimizers.pack_optimizer_state([1.0])


def test_an_optimizer_that_forgets_its_state():
    @optimizers.optimizer
    def forgetful():
        return (lambda x: (x, x)), (lambda i, g, s: s[0]), (lambda s: s[0])

    made = forgetful()
    with pytest.raises(TypeError, match=r"at \[0\] returned a state"):
        made.update_fn(0, [1.0, 2.0], made.init_fn([1.0, 2.0]))


def test_states_without_parameters():
    made = optimizers.momentum(0.1, 0.9)
    state = made.update_fn(0, [], made.init_fn([]))
    assert made.params_fn(state) == []
    assert optimizers.pack_optimizer_state([]) == state


def test_dropout_needs_a_key():
    init, apply = stax.serial(stax.Dense(3), stax.Dropout(0.5))
    _, params = init(random.key(0), (1, 2))
    with pytest.raises(ValueError, match="rng=key"):
        apply(params, jnp.ones((1, 2)))
    assert stax.Dropout(0.5, "test")[1]((), jnp.ones(3), rng=random.key(0)).sum() == 3


def test_layers_get_the_right_number_of_parameters():
    init, apply = stax.serial(stax.Dense(3), stax.Relu)
    _, params = init(random.key(0), (1, 2))
    with pytest.raises(ValueError, match="shorter"):
        apply(params[:1], jnp.ones((1, 2)))
    fork = stax.parallel(stax.Identity, stax.Identity)
    with pytest.raises(ValueError, match="longer"):
        fork[1](((), ()), [1.0, 2.0, 3.0])


def test_sm3_steps_a_number_like_a_vector_of_one():
    made = optimizers.sm3(0.1)
    number, vector = made.init_fn(jnp.array(1.0)), made.init_fn(jnp.ones(1))
    for step in range(3):
        number = made.update_fn(step, jnp.array(0.5), number)
        vector = made.update_fn(step, jnp.full(1, 0.5), vector)
    found = made.params_fn(number)
    assert found.shape == () and found == made.params_fn(vector)[0] < 1.0
