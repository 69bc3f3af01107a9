"""Where the project lives goes into the metadata of a release: by the host that builds it, so that nothing is invented.

With ``PROJECT_URL`` in the environment (the release workflow sets it), the package index shows links to the repository
and its changelog, and links of README.md that lead to files lead there; with ``DOCUMENTATION_URL``, the address of the
site, estimators in notebooks lead to their pages. Without them there are no such links.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ProjectAddresses(MetadataHookInterface):
    """The fields ``readme`` and ``urls`` of a build."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Fill what ``pyproject.toml`` calls dynamic."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        address = os.environ.get("PROJECT_URL", "").rstrip("/")
        if address:
            text = re.sub(r"\]\((?!https?:|#)([^)]+)\)", rf"]({address}/blob/main/\1)", text)
            changelog = f"{address}/blob/main/CHANGELOG.md"
            metadata["urls"] = {"Repository": address, "Changelog": changelog, "Issues": f"{address}/issues"}
        if os.environ.get("DOCUMENTATION_URL"):
            metadata.setdefault("urls", {})["Documentation"] = os.environ["DOCUMENTATION_URL"]
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
