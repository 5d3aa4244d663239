# Made from the chapters by `make chapters`; edit them, not this file.

from minijax.scipy.spatial.transform.rotations import Rotation as Rotation
from minijax.scipy.spatial.transform.rotations import Slerp as Slerp
