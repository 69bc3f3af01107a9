"""Write ``convexkernels/__init__.pyi``, by which editors and type checkers see the names that are loaded on first use.

python docs/public_names.py
"""

from pathlib import Path

import convexkernels

STUB = Path(convexkernels.__file__).with_name("__init__.pyi")


def stub() -> str:
    """The text of the stub: every public name, from where it lives."""
    names: dict[str, list[str]] = {}
    for name, home in convexkernels._HOME.items():
        names.setdefault(home, []).append(name)
    lines = ["# Written by docs/public_names.py.", "__version__: str", ""]
    for home in sorted(names):
        for name in sorted(names[home]):
            line = f"from convexkernels.{home} import {name} as {name}"
            lines.append(line if len(line) <= 120 else line.replace(f"{name} as", f"(\n    {name} as") + ",\n)")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    STUB.write_text(stub())
