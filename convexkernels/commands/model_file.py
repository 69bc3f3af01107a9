"""Fitted models as files that say what they expect, and that execute nothing when they are loaded."""

import io
import json
import os
import zipfile
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from convexkernels import __version__
from convexkernels.exceptions import InvalidInputError

# The part of a file that says what columns the model expects.
COLUMNS = "columns.json"


@dataclass(eq=False)
class SavedModel:
    """A fitted estimator with what is needed to use it on another table.

    Names of the columns it was fitted on in order, of those that hold text, of the target and of the file; test scores
    with standard errors by the names of models.
    """

    estimator: Any
    features: list[str]
    categories: list[str]
    target: str
    table: str
    scores: dict[str, Any]
    version: str = __version__


def save_model(model: SavedModel, path: Path) -> None:
    """Write a model; an interrupted write leaves no half a model behind."""
    import skops.io

    written = io.BytesIO(skops.io.dumps(model))
    with zipfile.ZipFile(written, "a") as parts:
        parts.writestr(COLUMNS, json.dumps([model.features, model.categories]))
    unfinished = path.with_name(path.name + ".unfinished")
    unfinished.write_bytes(written.getvalue())
    os.replace(unfinished, path)


def columns_of(path: Path) -> tuple[list[str], list[str]]:
    """Features of a model, and those of them that hold text: what a table needs, known before anything slow is loaded.

    What is no file that `save_model` wrote is refused, and any where what reads it is not installed.
    """
    if find_spec("skops") is None:
        raise InvalidInputError("Models need skops, which is not installed: pip install 'convexkernels[persist]'.")
    if not path.is_file():
        raise InvalidInputError(f"There is no file {str(path)!r}; check the name and the folder.")
    try:
        with zipfile.ZipFile(path) as parts:
            features, categories = json.loads(parts.read(COLUMNS))
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        raise InvalidInputError(f"{path} is not a model that `convexkernels learn --out` wrote ({error}).") from error
    return features, categories


def load_model(path: Path) -> SavedModel:
    """Read a model that `save_model` wrote; a file that holds types that are not this library's is refused."""
    columns_of(path)
    import skops.io

    try:
        unknown = skops.io.get_untrusted_types(file=path)
        foreign = [name for name in unknown if not _is_ours(name)]
        if foreign:
            raise InvalidInputError(
                f"{path} holds {', '.join(foreign[:3])}, which no model of this library has; it is not loaded."
            )
        model = skops.io.load(path, trusted=unknown)
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"{path} is not a model that `convexkernels learn --out` wrote ({error}).") from error
    if not isinstance(model, SavedModel):
        raise InvalidInputError(f"{path} holds a {type(model).__name__}, not a model of `convexkernels learn --out`.")
    return model


def _is_ours(name: str) -> bool:
    """Whether this is the name of a class of this library: its objects are filled with data, and nothing is called."""
    if name == "numpy.dtype":
        return True
    module, _, attribute = name.rpartition(".")
    if not module.startswith("convexkernels.") or "__" in module:
        return False
    try:
        found = getattr(import_module(module), attribute, None)
    except ImportError:
        return False
    return isinstance(found, type) and found.__module__ == module
