"""Rigorous bounds against ball arithmetic."""
