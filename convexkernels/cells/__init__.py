"""Cells: covers of the space of points, and functions that are learned in one cell each."""

from convexkernels.cells.cover import Assignment, Cover, OverlappingCover, RandomChunks, TreeCover, VoronoiCover
from convexkernels.cells.covering import tree_cover, voronoi_cover
from convexkernels.cells.learner import CellSelection
from convexkernels.cells.options import Cells
from convexkernels.cells.traversal import Traversal, farthest_first

__all__ = [
    "Assignment",
    "CellSelection",
    "Cells",
    "Cover",
    "OverlappingCover",
    "RandomChunks",
    "Traversal",
    "TreeCover",
    "VoronoiCover",
    "farthest_first",
    "tree_cover",
    "voronoi_cover",
]
