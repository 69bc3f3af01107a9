"""The matrices of tessellated kernels: integrals over a box or means over points, adjoints, stacks, compiled loops."""
