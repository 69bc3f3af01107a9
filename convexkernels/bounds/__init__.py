"""The bounds of the papers as functions, for plain numbers and for fitted estimators.

Constants that a paper says exist, and does not determine, are arguments without a default: nothing is made up for them.
"""

from convexkernels.bounds.entropy import (
    convolution_constant,
    cover_numbers,
    interior_radii,
    joined_cover,
    joined_entropy,
    local_entropy,
)
from convexkernels.bounds.oracle import SVMNumbers, approximation_error, hierarchical_risk_bound
from convexkernels.bounds.rademacher import (
    ComplexityNumbers,
    excess_risk_bound,
    lipschitz_constant,
    rademacher_bound,
    rademacher_rate,
)
from convexkernels.bounds.rates import (
    CellSchedule,
    cell_nets,
    cell_schedule,
    learning_rate,
    net_constants,
    net_gap,
    rate_gap,
    smallest_sample,
)
from convexkernels.bounds.regional import CellNumbers, cells_entropy, cells_risk_bound, selected_risk_bound
from convexkernels.bounds.statement import Bound

__all__ = [
    "Bound",
    "CellNumbers",
    "CellSchedule",
    "ComplexityNumbers",
    "SVMNumbers",
    "approximation_error",
    "cell_nets",
    "cell_schedule",
    "cells_entropy",
    "cells_risk_bound",
    "convolution_constant",
    "cover_numbers",
    "excess_risk_bound",
    "hierarchical_risk_bound",
    "interior_radii",
    "joined_cover",
    "joined_entropy",
    "learning_rate",
    "lipschitz_constant",
    "local_entropy",
    "net_constants",
    "net_gap",
    "rademacher_bound",
    "rademacher_rate",
    "rate_gap",
    "selected_risk_bound",
    "smallest_sample",
]
