# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.image.resampling import ResizeMethod as ResizeMethod
from minijax.image.resampling import resize as resize
from minijax.image.resampling import scale_and_translate as scale_and_translate
