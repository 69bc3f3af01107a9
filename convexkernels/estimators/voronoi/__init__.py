"""Estimators that learn a function in every cell of a partition."""
