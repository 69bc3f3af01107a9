"""Random and hostile problems against every solver and extended precision: ``python -m tests.campaign --problems N``."""
