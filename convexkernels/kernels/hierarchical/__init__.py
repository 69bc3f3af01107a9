"""Hierarchical Gaussian kernels: trees, their evaluation with all derivatives, and the kernel."""
