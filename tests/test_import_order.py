"""What a program compiles to does not depend on which module is imported first."""

import os
import random

import numpy as np
import pytest

from minijax.llvm.targets import forced_target, kernel_function
from tests import import_orders, mutants, mutants_package, vector_cases

F32 = np.dtype("float32")
forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")


@forking
def test_texts_are_the_same():
    """Low floors first, high ones, at random; and with one module that registers."""
    alone = random.Random(0).sample(import_orders.registering(), 1)
    alone += ["minijax.vectorization.schedules", "minijax.vectorization.row_schedules"]
    orders = [*import_orders.orders(seed=0, count=2), *[[name] for name in alone]]
    assert import_orders.compare(orders) == []


@forking
def test_another_order_is_seen_in_a_process():
    orders = [*import_orders.orders(seed=0, count=0)]
    with mutants_package.switched_on("changes of nests as they come"):
        [wrong] = import_orders.compare(orders)
    assert "another text of kernels by hand" in wrong


def test_another_order_is_seen():
    """The fault, brought back: a kernel with two sweeps becomes another text."""
    kernel, plain = vector_cases.parts(600, 500, F32, along=0), forced_target("plain")
    text = kernel_function(kernel, "k", plain).text
    with mutants.import_order():
        assert kernel_function(kernel, "k", plain).text != text
    assert kernel_function(kernel, "k", plain).text == text
