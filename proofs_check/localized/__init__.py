"""Claims of Meister and Steinwart (2016): support vector machines in the cells of a partition."""
