"""The table of all claims: one folder per paper, in the order a reader meets them."""

from __future__ import annotations

from proofs_check.claim import Claim
from proofs_check.concatenated import claims as concatenated
from proofs_check.hierarchical import claims as hierarchical
from proofs_check.library import claims as library
from proofs_check.localized import claims as localized
from proofs_check.spectral import claims as spectral
from proofs_check.tessellated import claims as tessellated

PAPERS: dict[str, list[Claim]] = {
    "tessellated": tessellated.CLAIMS,
    "hierarchical": hierarchical.CLAIMS,
    "spectral": spectral.CLAIMS,
    "concatenated": concatenated.CLAIMS,
    "localized": localized.CLAIMS,
    "library": library.CLAIMS,
}

TITLES = {
    "tessellated": "Colbert and Peet, A convex parametrization of a new class of universal kernel functions (2020)",
    "hierarchical": "Steinwart, Thomann and Schmid, Learning with hierarchical Gaussian kernels (2016)",
    "spectral": "Li, Liu and Wang, Automated spectral kernel learning (2020)",
    "concatenated": "Bohn, Griebel and Rieger, A representer theorem for deep kernel learning (2019)",
    "localized": "Meister and Steinwart, Optimal learning rates for localized SVMs (2016)",
    "library": "Every kernel and every convex family the library exports",
}


def claims(paper: str | None = None) -> list[Claim]:
    """Return the claims of one paper, or all of them."""
    if paper is not None:
        return list(PAPERS[paper])
    return [claim for group in PAPERS.values() for claim in group]
