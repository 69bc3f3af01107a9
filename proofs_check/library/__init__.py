"""Claims about what the library exports: kernels, risks, slopes, lower bounds."""
