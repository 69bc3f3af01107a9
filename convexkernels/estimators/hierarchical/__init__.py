"""Estimators that learn a hierarchical Gaussian kernel."""
