"""The three experiments that are searches: the paper's regression sets, CIFAR-10 scaled down, and what people use."""

from __future__ import annotations

from experiments import search
from experiments.datasets import PAPER_SIZES, prepare
from experiments.experiment import Body, Experiment, Results
from experiments.records import Places
from experiments.search_pages import (
    PAPER_METHODS,
    belief_table,
    deciding_table,
    draw,
    in_words,
    score_table,
    seeds_of,
    standings,
)

SMALL = (
    "Trainings here are seconds long and the paper's took 10 to 40 minutes, networks are smaller, and the recipe is "
    "another, so errors are not comparable with the paper's number by number; the order of the methods is."
)
NOISE = (
    "The best validation value of a search is partly luck, and the retrained one shows how much. The data are divided "
    "once, so the standard errors are of searches and trainings, not of data. With few seeds a difference of one "
    "standard error may be chance."
)


def _write_paper(results: Results, places: Places, *, name: str, y: str) -> Body:
    datasets = results.values("dataset")
    methods = list(dict.fromkeys((*PAPER_METHODS, *results.values("method"))))
    parts = [
        draw([results], datasets, methods, places, name, y=y),
        score_table([results], datasets, methods, paper=True),
        deciding_table([results], methods),
        belief_table([results], datasets),
    ]
    found = standings([results], datasets, methods)
    words = in_words(found) or "There is no data set yet on which NASBOT and another method both ran."
    return Body("\n\n".join(parts), f"With {seeds_of([results])}: {words} {SMALL} {NOISE}")


def write_regression(results: Results, places: Places) -> Body:
    """Figure 3 and Table 3 without CIFAR-10."""
    return _write_paper(results, places, name="regression", y="validation error")


def write_cifar(results: Results, places: Places) -> Body:
    """The last panel of Figure 3 and its column of Table 3."""
    return _write_paper(results, places, name="cifar10", y="validation loss")


def write_alternatives(results: Results, places: Places) -> Body:
    """NASBOT's searches beside those of the tools that people have."""
    # Under the same settings, which `like` in the protocol sees to; others may not stand beside these.
    both = [*(o for o in results.used.values() if o.protocol.digest == results.protocol.digest), results]
    datasets = results.values("dataset")
    methods = ("NASBOT", *results.values("method"))
    parts = [
        draw(
            both, datasets, [m for m in methods if m != search.BOOSTING], places, "alternatives", y="validation error"
        ),
        score_table(both, datasets, methods, paper=False),
        deciding_table(both, methods),
    ]
    words = in_words(standings(both, datasets, methods))
    words = words or "There is no data set yet on which NASBOT and another method both ran."
    shows = (
        f"With {seeds_of(both)}: {words} Optuna searches chains of one activation with its own defaults, and begins "
        "without a pool; scikit-learn's MLP also has its step size and penalty searched, which ours has not; gradient "
        f"boosting is fitted once, with defaults, its trees counted on the validation part. {NOISE}"
    )
    return Body("\n\n".join(parts), shows)


REGRESSION = Experiment(
    name="regression",
    title="Cross-validation search on the regression sets (Figure 3, Table 3)",
    question=(
        "Given the same wall-clock time, deciding included, and two workers that run asynchronously, which method "
        "finds the MLP with the lowest validation error, and what is that network worth on the test part?"
    ),
    method=(
        "The paper's data sets, 0.6/0.2/0.2, inputs and output standardised: "
        + ", ".join(
            f"{name} ({size} in the paper)" for name, size in PAPER_SIZES.items() if name not in ("cifar10", "slice")
        )
        + ". Slice is not available to us and is left out; News is a reconstruction of 37,558 of its rows, with the "
        "logarithm of the shares as its target. Every method begins with the initial pool, its units divided by "
        "`pool_divisor`; a network is trained by `recipe`, larger ones for fewer steps (`work` bounds the arithmetic). "
        "Imports and compilation happen before the clock starts; after `seconds` the search ends and what is still "
        "running is dropped. The best network by validation is trained again from other weights, and the test error is "
        "taken at its best validation step; *as recommended* is the network of the highest mean under the belief "
        "instead, where that was recorded. NASBOT has modifiers that the paper's rivals have not, which halve and "
        "double units ([deviations](../deviations.md))."
    ),
    do=search.do,
    write=write_regression,
    prepare=prepare,
    single=False,
)
CIFAR10 = Experiment(
    name="cifar10",
    title="CIFAR-10, scaled down to two cores (Figure 3, Table 3)",
    question="The same as on the regression sets, for CNNs on images.",
    method=(
        "CIFAR-10 scaled down: `images` of each part drawn at random from the paper's 40K/10K/10K, averaged to "
        "`image_size` pixels a side; the initial pool of CNNs with its units divided by `pool_divisor` (those that "
        "stay within the limits); at most `max_flops` operations an image. The searches minimise the negative "
        "log-likelihood, which is less noisy than the error that the paper minimises; the table has the error. "
        "NASBOT has modifiers for CNNs that the paper's rivals have not ([deviations](../deviations.md)); EA leaps is "
        "EA with them."
    ),
    do=search.do,
    write=write_cifar,
    prepare=prepare,
    single=False,
)
ALTERNATIVES = Experiment(
    name="alternatives",
    title="What a person would use instead: Optuna, scikit-learn, gradient boosting",
    question=(
        "On the same data with the same budget, workers and trainer: is searching architectures with NASBOT better "
        "than tuning depth, widths and activation with Optuna, than random search over scikit-learn's MLP, and how far "
        "are all of them from gradient boosting?"
    ),
    method=(
        "The protocol of [regression](regression.md), whose searches by NASBOT are compared with these. Optuna's TPE "
        "and GP samplers with their defaults over chains of 1 to 8 layers, 8 to 256 units each, one of six "
        "activations, trained by our trainer; scikit-learn's MLPRegressor by random search over the same space (three "
        "activations), step size and penalty, for as many steps; HistGradientBoostingRegressor with its defaults and "
        "up to `trees` trees."
    ),
    do=search.do,
    write=write_alternatives,
    prepare=prepare,
    single=False,
    uses=("regression",),
)
