"""Random and hostile problems for every solver, and extended precision: ``python -m tests.campaign --problems N``."""
