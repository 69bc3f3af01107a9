"""Problems: a family, a loss and data, joined into something that can measure any candidate."""
