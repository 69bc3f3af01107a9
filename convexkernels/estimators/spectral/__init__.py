"""Estimators that learn the frequencies of a spectral kernel."""
