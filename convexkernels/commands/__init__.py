"""What the commands do; :mod:`convexkernels.cli` reads their arguments."""
