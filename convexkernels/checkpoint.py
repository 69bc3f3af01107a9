"""What work has found so far, in a file from which the next run of the same work goes on."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from convexkernels.exceptions import InvalidInputError

# Seconds between two times that a file is written; where one takes longer than `QUICK`, in proportion more.
EVERY, QUICK = 5.0, 0.25

Numbers = dict[str, NDArray[Any]]


def fingerprint(*parts: Any) -> str:
    """The same text for equal parts, in any process."""
    from joblib import hash as hashed  # takes longer to load than most of what has no checkpoint

    try:
        return str(hashed(parts))
    except Exception as error:
        raise InvalidInputError(
            f"checkpoint needs kernels, losses and parameters that can be pickled, which is how it knows the work "
            f"again; pass None, or functions that have a name in a module ({error})."
        ) from error


class Checkpoint:
    """A file with numbers by the piece of work that found them; it belongs to one table: rows, targets and weights.

    What it says is where work begins, never what is true: certificates are computed again. Any file that is there and
    no checkpoint of these data is refused, and stays as it is.
    """

    def __init__(self, path: Any, *data: Any) -> None:
        self.path = checked_path(path)
        self.data = fingerprint(*data)
        self.numbers = self._read()
        self._wrote, self._took = time.monotonic(), 0.0

    @classmethod
    def of(cls, checkpoint: Any, *data: Any) -> Checkpoint | None:
        """The checkpoint that a `checkpoint` argument means: None, the path of a file, or a checkpoint itself."""
        return checkpoint if checkpoint is None or isinstance(checkpoint, cls) else cls(checkpoint, *data)

    def _read(self) -> Numbers:
        if not self.path.exists():
            return {}
        found: Numbers = {}
        try:
            with np.load(self.path, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
        except (OSError, ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile):
            pass
        if "data" not in found:
            raise InvalidInputError(
                f"checkpoint {str(self.path)!r} exists, but is no checkpoint; move it away or name another file."
            )
        if str(found.pop("data")) != self.data:
            raise InvalidInputError(
                f"checkpoint {str(self.path)!r} is one of other rows, targets or weights; move it away or name another "
                "file."
            )
        return found

    @property
    def is_due(self) -> bool:
        """Whether the file was not written for a while."""
        return time.monotonic() - self._wrote >= EVERY * max(1.0, self._took / QUICK)

    def write(self) -> None:
        """Replace the file in one step, so that an interrupt leaves the old one or the new one."""
        began, beside = time.monotonic(), self.path.with_name(self.path.name + ".part")
        with beside.open("wb") as stream:
            np.savez(stream, data=np.array(self.data), **self.numbers)  # type: ignore[arg-type]
        beside.replace(self.path)
        self._wrote = time.monotonic()
        self._took = self._wrote - began


class Piece:
    """A piece of work, and what a checkpoint knows of it; without one nothing, and nothing is kept."""

    def __init__(self, checkpoint: Checkpoint | None, *work: Any) -> None:
        self.checkpoint = checkpoint
        self.key = "" if checkpoint is None else f"{fingerprint(*work)}."

    def part(self, *work: Any) -> Piece:
        """A piece of this piece."""
        return Piece(self.checkpoint, self.key, *work)

    @property
    def found(self) -> Numbers:
        """Numbers by name, empty where nothing is known."""
        known = {} if self.checkpoint is None else self.checkpoint.numbers
        return {name.removeprefix(self.key): value for name, value in known.items() if name.startswith(self.key)}

    @property
    def is_due(self) -> bool:
        """Whether it is time to keep what was found."""
        return self.checkpoint is not None and self.checkpoint.is_due

    def keep(self, *, now: bool = False, **numbers: Any) -> None:
        """Keep what was found; the file is written every few seconds, a large one less often, or `now`."""
        if self.checkpoint is not None:
            self.checkpoint.numbers |= {f"{self.key}{name}": np.array(value) for name, value in numbers.items()}
            if now or self.checkpoint.is_due:
                self.checkpoint.write()


def checked_path(path: Any) -> Path:
    """The file of a checkpoint, in a folder that exists."""
    if not isinstance(path, str | Path):
        raise InvalidInputError(f"checkpoint must be the path of a file or None, got {path!r}.")
    file = Path(path)
    if not file.absolute().parent.is_dir() or file.is_dir():
        raise InvalidInputError(f"checkpoint is {str(path)!r}, which is no file in a folder that exists.")
    return file
