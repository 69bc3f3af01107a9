"""Claims of Li, Liu and Wang (2020): spectral kernels whose frequencies are learned."""
