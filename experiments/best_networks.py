"""Appendix C.3: the best networks of each method drawn, and what they share, tested against the paper's statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import beta

from benchmarks.runs import Record
from experiments.experiment import Body, Experiment, Results
from experiments.markdown import mean_and_error, table
from experiments.networks import LONG_SKIP, Anatomy
from experiments.records import Places
from experiments.search_pages import validation
from nasbot import Architecture

SEARCHES = ("regression", "cifar10")
METHODS = ("NASBOT", "EA", "RAND", "TreeBO")
FEATURES = {"long_skip": "a long skip", "several_decisions": "a second decision layer"}
COMMON = 0.5  # the paper says "a common feature among all"; a feature of half of the networks is common
LEVEL = 0.95


class Share(NamedTuple):
    """How many of the best networks have a feature, an exact interval, what chance gives, and how surprising it is."""

    found: int
    n: int
    low: float
    high: float
    expected: float  # the mean over runs of the share among all networks that the run tried
    p: float  # of at least so many, were the best network of a run one of those it tried, drawn at random

    @property
    def share(self) -> float:
        return self.found / self.n


def share_of(records: Sequence[Record], feature: str) -> Share:
    """Of runs with a best network."""
    have = [_has(record, feature) for record in records]
    chance = np.array([record["result"]["proposed"][feature] for record in records], dtype=np.float64)
    count, n = sum(have), len(have)
    low = float(beta.ppf((1 - LEVEL) / 2, count, n - count + 1)) if count else 0.0
    high = float(beta.ppf((1 + LEVEL) / 2, count + 1, n - count)) if count < n else 1.0
    return Share(count, n, low, high, float(chance.mean()), at_least(count, chance))


def at_least(count: int, chances: Sequence[float] | np.ndarray) -> float:
    """The probability that at least ``count`` of independent events with these chances happen."""
    distribution = np.ones(1)
    for chance in chances:
        distribution = np.convolve(distribution, [1.0 - chance, chance])
    return float(min(1.0, distribution[count:].sum()))


def _has(record: Record, feature: str) -> bool:
    anatomy = Anatomy(**record["result"]["best"]["anatomy"])
    return anatomy.has_long_skip if feature == "long_skip" else anatomy.has_several_decisions


def searches(results: Results) -> list[Record]:
    """All searches with a best network."""
    return [record for record in results.everything if record["result"]["best"] is not None]


def write(results: Results, places: Places) -> Body:
    """A drawing for each data set and method, of the seed with the lowest validation value; and the statistics."""
    records = searches(results)
    if not records:
        return Body("The records have no network.", "Nothing.")
    return Body("\n\n".join([_drawings(records, places), _anatomies(records), _tests(records)]), _shows(records))


def _of(records: Sequence[Record], **wanted: object) -> list[Record]:
    return [r for r in records if all(r["run"].get(key) == value for key, value in wanted.items())]


def _drawings(records: Sequence[Record], places: Places) -> str:
    rows = []
    for dataset in dict.fromkeys(record["run"]["dataset"] for record in records):
        row = [dataset]
        for method in METHODS:
            runs = _of(records, dataset=dataset, method=method)
            if not runs:
                row.append("–")
                continue
            best = min(runs, key=validation)
            name = f"best-{dataset}-{method.lower()}.svg"
            arch = Architecture.from_dict(best["result"]["best"]["arch"])
            title = f"{method} on {dataset}, seed {best['run']['seed']}"
            arch.draw(places.figure(name), title=title)
            row.append(f"[{validation(best):.4g}](figures/{name})")
        rows.append(row)
    return "Best validation value, linked to the drawing of its network:\n\n" + table(("data", *METHODS), rows)


def _anatomies(records: Sequence[Record]) -> str:
    rows = []
    for method in METHODS:
        found = [Anatomy(**r["result"]["best"]["anatomy"]) for r in _of(records, method=method)]
        if found:
            cells = [
                mean_and_error([float(getattr(one, field)) for one in found], 1).split(" (")[0]
                for field in ("layers", "depth", "skips", "longest_skip", "decision_layers")
            ]
            rows.append((method, len(found), *cells))
    return table(("method", "networks", "layers", "depth", "skips", "longest skip", "decision layers"), rows)


def _tests(records: Sequence[Record]) -> str:
    rows = []
    for method in METHODS:
        runs = _of(records, method=method)
        for feature, words in FEATURES.items():
            if runs:
                one = share_of(runs, feature)
                interval = f"{one.low:.0%} to {one.high:.0%}"
                rows.append((method, words, f"{one.found} of {one.n}", interval, f"{one.expected:.0%}", f"{one.p:.2g}"))
    return table(("method", "the best network has", "runs", "95 % interval", "of all it tried", "p"), rows)


def statement(records: Sequence[Record]) -> dict[str, Share]:
    """The two features among NASBOT's best networks; empty where it has none."""
    ours = _of(records, method="NASBOT")
    return {feature: share_of(ours, feature) for feature in FEATURES} if ours else {}


def _shows(records: Sequence[Record]) -> str:
    said = []
    for feature, one in statement(records).items():
        common = "common" if one.low > COMMON else "not common" if one.high < COMMON else "perhaps common"
        chosen = (
            "more often than among all networks it tried" if one.p < 1 - LEVEL else "no more often than it tried them"
        )
        said.append(
            f"In NASBOT's best networks {FEATURES[feature]} is {common} ({one.found} of {one.n}), {chosen} "
            f"(p {one.p:.2g})."
        )
    return (
        " ".join(said)
        + f" A long skip is an edge that passes by {LONG_SKIP} layers or more; intervals are Clopper and Pearson's. "
        "TreeBO searches chains, which have neither. That a feature is frequent does not show that it helps: "
        "modifiers make it. Hence the comparison with all networks that the same runs tried."
    )


BEST_NETWORKS = Experiment(
    name="best-networks",
    title="The best networks, and what they share (Appendix C.3)",
    question='The paper: "common features were long skip connections and multiple decision layers". Are they here?',
    method=(
        "The best network by validation of every recorded search of [regression](regression.md) and "
        "[cifar10](cifar10.md). p: the chance of at least so many, if each run had drawn its best network at random "
        "from those it proposed."
    ),
    do=None,
    write=write,
    uses=SEARCHES,
)
