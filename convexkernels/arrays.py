"""The types of arrays, under the names that signatures use."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]
# Of any type that says which class a row is of.
Labels = NDArray[Any]
