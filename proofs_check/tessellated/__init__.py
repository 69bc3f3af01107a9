"""Claims of Colbert and Peet (2020): tessellated kernels, and learning a matrix or the weights of kernels."""
