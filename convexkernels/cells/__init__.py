"""Cells: covers of the space of points, and functions that are learned in one cell each."""
