"""Learn the kernel of an SVM or of ridge regression by optimization, and certify the answer.

Everything public is importable from here; modules are loaded on first use, so that
``import convexkernels`` stays cheap.
"""

import re
from importlib import import_module
from pkgutil import get_data
from typing import Any

__version__ = "0.1.0"

# public name -> module that defines it, as the stub beside this file says to type checkers
_STUB = (get_data(__name__, "__init__.pyi") or b"").decode()
_HOME = {name: module for module, name in re.findall(r"^from (\S+) import \(?\s*(\w+) as", _STUB, re.MULTILINE)}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'convexkernels' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
