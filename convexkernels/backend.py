"""One set of formulas on two kinds of arrays: numpy's, and PyTorch tensors on any device.

The formulas are written with the names of the Python array API standard, which numpy has and array_api_compat gives to
PyTorch. Neither this nor PyTorch is a dependency; they are imported when tensors or a device are passed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from convexkernels.exceptions import ConvexKernelsError, InvalidInputError
from convexkernels.threads import in_threads
from convexkernels.validation import available_memory

DTYPES = ("float32", "float64")


class MissingTorchError(ConvexKernelsError, ImportError):
    """A device was asked for, but PyTorch is not installed."""


class Backend:
    """Where arrays live (a `device` of PyTorch, None for numpy), their type, and the functions of the array API."""

    def __init__(self, dtype: str = "float32", device: Any = None) -> None:
        if dtype not in DTYPES:
            raise InvalidInputError(f"dtype must be 'float32' or 'float64', got {dtype!r}.")
        place: tuple[Any, Any] = (None, np) if device is None else _place(device)
        self.device, self.xp = place
        self.dtype: Any = getattr(self.xp, dtype)
        self.double: Any = self.xp.float64

    @property
    def is_numpy(self) -> bool:
        """Whether arrays are numpy's."""
        return self.device is None

    def array(self, x: Any) -> Any:
        """`x` as an array of this backend's type on its device; tensors do not pass through numpy."""
        if self.is_numpy:
            return np.ascontiguousarray(to_numpy(x), dtype=self.dtype)
        return self.xp.asarray(x, dtype=self.dtype, device=self.device)

    def there(self, x: Any) -> Any:
        """`x` on the device, in the type that it has; numpy's as they are."""
        return x if self.is_numpy else self.xp.asarray(x, device=self.device)

    def each(self, work: Callable[[Any], Any], parts: Sequence[Any]) -> list[Any]:
        """`work` on every part: in threads by numpy, one after the other on a device, which has threads of its own."""
        return in_threads(work, parts) if self.is_numpy else [work(part) for part in parts]

    def column_products(self, A: Any, B: Any) -> Any:
        """``sum_i A_ij B_ij`` in float64, of a matrix in float64 and another one."""
        if self.is_numpy:
            return np.einsum("ij,ij->j", A, B, dtype=np.float64)
        return (A * B).sum(dim=0)

    def free_memory(self) -> float:
        """Bytes that arrays here may still take."""
        if self.is_numpy or self.device.type != "cuda":
            return available_memory()
        memory, here = import_module("torch").cuda, self.xp.zeros(1, device=self.device).device  # "cuda" has no number
        kept_for_later = memory.memory_reserved(here) - memory.memory_allocated(here)
        return float(memory.mem_get_info(here)[0] + kept_for_later)

    def copy(self, x: Any) -> Any:
        """A copy that shares no memory with `x`."""
        return x.copy() if self.is_numpy else x.clone()

    def doubled(self) -> Backend:
        """The backend of float64 in the same place."""
        return Backend("float64", self.device)

    def __getstate__(self) -> dict[str, Any]:
        # Namespaces cannot be pickled; their names can.
        return {"dtype": str(self.dtype).split(".")[-1].strip("'>"), "device": self.device and str(self.device)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def backend_for(arrays: dict[str, Any], *, dtype: str, device: Any = None) -> Backend:
    """The backend that arguments ask for: tensors bring their device along; to one that is given all is moved.

    Tensors on different devices are refused where none is given, and so is a device where PyTorch is not installed.
    """
    places = {name: x.device for name, x in arrays.items() if is_tensor(x)}
    if device is None and len({str(place) for place in places.values()}) > 1:
        found = ", ".join(f"{name} on {place}" for name, place in places.items())
        raise InvalidInputError(f"tensors are on different devices ({found}); move them to one, or pass device=.")
    if device is None and places:
        device = next(iter(places.values()))
    return Backend(dtype, device)


def device_name(device: Any) -> str | None:
    """The name of a device that can be used, which can be stored where PyTorch is not installed; None for numpy."""
    return None if device is None else str(_place(device)[0])


def is_tensor(x: Any) -> bool:
    """Whether `x` is a PyTorch tensor (PyTorch is not imported to find out)."""
    return any(kind.__module__.split(".")[0] == "torch" and kind.__name__ == "Tensor" for kind in type(x).__mro__)


def to_numpy(x: Any) -> Any:
    """`x` in numpy's memory."""
    if type(x) is np.ndarray:
        return x
    return x.detach().cpu().numpy() if is_tensor(x) else np.asarray(x)


def _place(device: Any) -> tuple[Any, Any]:
    """A device of PyTorch that can be used, and the namespace for it."""
    try:
        torch, namespace = import_module("torch"), import_module("array_api_compat.torch")
    except ImportError as error:
        raise MissingTorchError(
            f"device= needs PyTorch and array-api-compat ({error}): pip install 'convexkernels[torch]', or leave "
            "device=None for numpy."
        ) from error
    try:
        device = torch.device(device)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise InvalidInputError(
            f"device={device!r} cannot be used ({str(error).splitlines()[0]}); pass one that PyTorch has here, "
            "for example 'cpu', or None for numpy."
        ) from error
    return device, namespace
