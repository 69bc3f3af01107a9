"""Spectral kernels whose frequencies are learned together with the weights of the function that uses them."""
