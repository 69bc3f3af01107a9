"""Solvers of convex kernel learning."""
