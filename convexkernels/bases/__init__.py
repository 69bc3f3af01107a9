"""Monomial bases and their integrals over a box: exponents, symbolic forms, compiled tables."""
