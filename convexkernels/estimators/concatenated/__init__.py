"""Estimators of concatenations of kernels."""
