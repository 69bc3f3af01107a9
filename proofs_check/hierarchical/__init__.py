"""Claims of Steinwart, Thomann and Schmid (2016): hierarchical Gaussian kernels."""
