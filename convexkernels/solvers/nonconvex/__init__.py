"""Solvers of problems that are not convex: outer loops around convex solves."""
