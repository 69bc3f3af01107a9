"""Pictures of what was learned, as Display objects; matplotlib is imported when something is drawn."""

from convexkernels.plotting.concatenated import ErrorMapDisplay, GridTransformationDisplay, SurfaceDisplay

__all__ = ["ErrorMapDisplay", "GridTransformationDisplay", "SurfaceDisplay"]
