"""The data that chapters train on; `README.md` in this folder tells its source."""

from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def digits(test=360):
    """Images of digits and their labels, for training and for the test.

    Returns:
      ``(images, labels), (images, labels)``: images float32[n, 8, 8, 1] from 0 to 1,
      labels int32[n]. The last `test` images are for the test.
    """
    with np.load(HERE / "digits.npz", allow_pickle=False) as found:
        images = found["images"][..., None].astype("float32") / 16
        labels = found["labels"].astype("int32")
    cut = len(labels) - test
    return (images[:cut], labels[:cut]), (images[cut:], labels[cut:])


def sonnets():
    """Eighteen sonnets of Shakespeare's, as one string."""
    return (HERE / "sonnets.txt").read_text(encoding="utf-8")
