"""Estimators that learn a kernel of a convex set: tessellated kernels and combinations of candidates."""
