"""Every numbered claim of the five papers, checked numerically: ``python -m proofs_check``."""
