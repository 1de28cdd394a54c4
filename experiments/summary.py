"""The paper's claims, what our records say of them, and a verdict; nothing is claimed that was not run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from benchmarks.runs import paired
from experiments.ablations import GROUPS, SIGNIFICANT, comparisons
from experiments.best_networks import COMMON, FEATURES, searches, statement
from experiments.experiment import Results
from experiments.fcnet import against as fcnet_against
from experiments.markdown import GENERATED, table
from experiments.nasbench201 import NAS_BENCH_201
from experiments.nasbench201 import against as nasbench_against
from experiments.search_pages import PAPER_DECIDING, PAPER_METHODS, recommended, standings, tested
from experiments.smoothness import correlations

NOT_RUN = "not run"
UNDECIDED = "not decided"
FEWEST_SEARCHES = 3  # seeds of a search for a verdict from means and standard errors
FEWEST_NETWORKS = 100  # for a verdict on how distance and error go together
FEWEST = 6  # seeds: with fewer the sign test cannot reach p < 0.05, whatever happens


class Finding(NamedTuple):
    """What our records say, in a sentence, and a word for it."""

    ours: str
    verdict: str


class Claim(NamedTuple):
    """A sentence of the paper (or a question of ours) and how records answer it."""

    source: str
    claim: str
    experiment: str
    judge: Callable[[Results], Finding]


def _group(names: tuple[str, ...], *, should_be_ahead: bool) -> Callable[[Results], Finding]:
    def judge(results: Results) -> Finding:
        found = [result for _, method, result in comparisons(results) if method in names]
        ahead = sum(result.mean > 0 and result.p < SIGNIFICANT for result in found)
        behind = sum(result.mean < 0 and result.p < SIGNIFICANT for result in found)
        ours = f"of {len(found)} comparisons ahead in {ahead}, behind in {behind} (sign test, p < {SIGNIFICANT})"
        if len(results.values("seed")) < FEWEST:
            return Finding(ours, UNDECIDED)
        if should_be_ahead:
            verdict = "holds" if ahead > len(found) / 2 and not behind else "holds in part" if ahead else "not seen"
        else:
            verdict = "holds" if not ahead and not behind else "does not hold"
        return Finding(ours, verdict if found else NOT_RUN)

    return judge


def _kin(results: Results) -> Finding:
    kin = [record["result"]["kin"]["d_bar"]["share_further_than_parent"] for record in results.records]
    share = sum(kin) / len(kin)
    return Finding(
        f"a network is nearer to its parent than to {share:.0%} of others", "holds" if share > 0.8 else "weak"
    )


def _nasbench(results: Results) -> Finding:
    return _won(nasbench_against(results, "crude", results.protocol.settings["queries"] // 2))


def _fcnet(results: Results) -> Finding:
    return _won(fcnet_against(results, "RAND", results.protocol.settings["queries"] // 2))


def _won(found: Mapping[str, object]) -> Finding:
    said, ahead, behind = [], 0, 0
    for dataset, result in found.items():
        wins, losses, p, mean = (getattr(result, name) for name in ("wins", "losses", "p", "mean"))
        said.append(f"{dataset}: {wins} wins, {losses} losses (p {p:.2g})")
        ahead += p < SIGNIFICANT and mean > 0
        behind += p < SIGNIFICANT and mean < 0
    verdict = "does not hold" if behind else "holds" if ahead == len(found) else "holds in part" if ahead else UNDECIDED
    return Finding("; ".join(said), verdict if found else NOT_RUN)


def _most_consistent(results: Results) -> Finding:
    found = standings([results], results.values("dataset"), results.values("method"))
    within = [one.dataset for one in found if one.within]
    others = [one.dataset for one in found if not one.within]
    ours = f"best or within one s.e. of the best on {len(within)} of {len(found)}" + (
        f"; not on {', '.join(others)}" if others else ""
    )
    if not found:
        return Finding("NASBOT has no record beside another method's", NOT_RUN)
    if min(one.ours.n for one in found) < FEWEST_SEARCHES:
        return Finding(ours, UNDECIDED)
    return Finding(ours, "holds" if not others else "holds in part" if within else "does not hold")


def _ahead_of_two(results: Results) -> Finding:
    found = standings([results], results.values("dataset"), PAPER_METHODS)
    if not found:
        return Finding("NASBOT has no record beside another method's", NOT_RUN)
    strictly = [one.dataset for one in found if {"EA", "TreeBO"} <= set(one.ahead)]
    ours = f"ahead of both on {len(strictly)} of {len(found)}"
    if min(one.ours.n for one in found) < FEWEST_SEARCHES:
        return Finding(ours, UNDECIDED)
    return Finding(
        ours, "holds" if len(strictly) > len(found) / 2 else "holds in part" if strictly else "does not hold"
    )


def _recommends(results: Results) -> Finding:
    """Test errors of what is recommended against those of the best value's network, search by search."""
    by_value = [record for record in results.where(method="NASBOT") if record["result"].get("recommended")]
    if not by_value:
        return Finding("no search with a recommendation", NOT_RUN)
    theirs, ours = (np.log([tested(record) for record in records]) for records in (by_value, recommended(by_value)))
    result = paired(theirs, ours)
    words = (
        f"test error {1 - np.exp(-result.mean):.1%} lower in the mean of {len(ours)} searches; lower in {result.wins}, "
        f"higher in {result.losses}, the same network in {len(ours) - result.wins - result.losses} (p {result.p:.2g})"
    )
    if len(ours) < FEWEST:
        return Finding(words, UNDECIDED)
    return Finding(words, ("holds" if result.mean > 0 else "does not hold") if result.p < SIGNIFICANT else "not seen")


def _deciding(results: Results) -> Finding:
    seconds = {
        method: [record["result"]["deciding"] for record in results.where(method=method)] for method in PAPER_METHODS
    }
    means = {method: sum(values) / len(values) for method, values in seconds.items() if values}
    ours = ", ".join(f"{method} {mean:.2f} s" for method, mean in means.items())
    theirs = [PAPER_DECIDING[method] for method in means]
    order = sorted(means, key=lambda method: -means[method]) == sorted(means, key=lambda m: -PAPER_DECIDING[m])
    faster = all(mean < paper for mean, paper in zip(means.values(), theirs, strict=True))
    return Finding(ours, ("same order" if order else "another order") + (", all faster" if faster else ""))


def _near_is_alike(results: Results) -> Finding:
    found = correlations(results)
    ours = "; ".join(
        f"{dataset}, {which}: rank correlation {one.rho:.2f} ({one.low:.2f} to {one.high:.2f}, {n} networks)"
        for (dataset, which), (n, one) in found.items()
    )
    if not found:
        return Finding("fewer than three networks", NOT_RUN)
    if min(n for n, _ in found.values()) < FEWEST_NETWORKS:
        return Finding(ours, UNDECIDED)
    sure = [one.low > 0 for _, one in found.values()]
    return Finding(ours, "holds" if all(sure) else "holds in part" if any(sure) else "not seen")


def _shared_features(results: Results) -> Finding:
    shares = statement(searches(results))
    if not shares:
        return Finding("no best network of NASBOT", NOT_RUN)
    ours = "; ".join(
        f"{FEATURES[feature]}: {one.found} of {one.n} (p {one.p:.2g} against all that were tried)"
        for feature, one in shares.items()
    )
    if min(one.n for one in shares.values()) < FEWEST:
        return Finding(ours, UNDECIDED)
    common = [one.low > COMMON for one in shares.values()]
    return Finding(ours, "holds" if all(common) else "holds in part" if any(common) else "does not hold")


def _ahead_of_optuna(results: Results) -> Finding:
    methods = ("NASBOT", "Optuna TPE", "Optuna GP")
    found = standings([results, *results.used.values()], results.values("dataset"), methods)
    if not found:
        return Finding("NASBOT and Optuna have no records under the same settings", NOT_RUN)
    ahead = [one.dataset for one in found if set(methods[1:]) <= {*one.ahead} & {*one.usually}]
    ours = f"ahead of both samplers, by mean and by median, on {len(ahead)} of {len(found)}"
    ours += f" ({', '.join(ahead)})" if ahead else ""
    clearly = [one.dataset for one in found if one.dataset in ahead and set(methods[1:]) <= {*one.clearly}]
    ours += f", by more than a standard error on {len(clearly)}" + (f" ({', '.join(clearly)})" if clearly else "")
    if min(one.ours.n for one in found) < FEWEST_SEARCHES:
        return Finding(ours, UNDECIDED)
    verdict = "holds" if len(clearly) >= 2 else "holds by a hair" if len(ahead) >= 2 else "does not hold"
    return Finding(ours, verdict)


CLAIMS = (
    Claim("Section 5, Table 3", "NASBOT is the most consistent of all methods", "regression", _most_consistent),
    Claim("Section 5, Table 3", "the same on CIFAR-10 (scaled down)", "cifar10", _most_consistent),
    Claim("Figure 3", "NASBOT beats EA and TreeBO on most regression sets", "regression", _ahead_of_two),
    Claim("ours", "what the belief recommends is better to train again than the best value", "regression", _recommends),
    Claim(
        "Section 5", "deciding takes 46.13 s (NASBOT), 26.43 (RAND), 7.83 (TreeBO), 0.19 (EA)", "regression", _deciding
    ),
    Claim(
        "Figure 4, top",
        "the kernel of both distances outperforms each alone",
        "ablations",
        _group(GROUPS["kernel"], should_be_ahead=True),
    ),
    Claim(
        "Figure 4, middle",
        "all nine modifiers outperform those of units or of structure alone",
        "ablations",
        _group(GROUPS["modifiers"], should_be_ahead=True),
    ),
    Claim(
        "Figure 4, bottom",
        "performance is not particularly sensitive to p and p_bar",
        "ablations",
        _group(GROUPS["powers"], should_be_ahead=False),
    ),
    Claim("Figures 6, 7", "similar networks are placed close to each other", "distance-map", _kin),
    Claim(
        "Figure 8", "when the distance is small the difference in performance is small", "smoothness", _near_is_alike
    ),
    Claim(
        "Appendix C.3",
        "long skips and several decision layers are common in the best networks",
        "best-networks",
        _shared_features,
    ),
    Claim("ours", "NASBOT beats Optuna in a flat space on at least two sets", "alternatives", _ahead_of_optuna),
    Claim("ours", "OTMANN beats the plain distances published as NASBOT (NAS-Bench-201)", "nasbench201", _nasbench),
    Claim("ours", "NASBOT beats random search in the FCNet tables", "fcnet", _fcnet),
)


PAGES = {experiment.name: experiment.page for experiment in (NAS_BENCH_201,)}  # those that stand in another page


def summary_page(results: Mapping[str, Results], *, quick: bool = False) -> str:
    """The table of claims, and where each page is."""
    rows = []
    for source, claim, experiment, judge in CLAIMS:
        found = results[experiment]
        is_run = bool(found.records if found.protocol.axes else found.everything)
        finding = judge(found) if is_run else Finding("no records", NOT_RUN)
        recorded, asked = len(found.records), len(found.protocol.runs())
        more = f" and {recorded - asked} more" if recorded > asked else ""
        n = f"{min(recorded, asked)} of {asked} runs{more}" if recorded else ""
        link = f"[{experiment}]({PAGES.get(experiment, f'{experiment}.md')})"
        rows.append((source, claim, finding.ours, f"**{finding.verdict}**", f"{link} {n}".strip()))
    parts = [
        GENERATED,
        "# The paper's claims, and ours beside them",
        "A verdict is computed from the records by the rule in `experiments/summary.py`; *not run* means that there "
        "are no records, and then nothing is claimed.",
        "**These are the records of `--quick`: they show that the experiments run, and nothing else.**"
        if quick
        else "",
        table(("in the paper", "claim", "our records", "verdict", "page"), rows),
        "```console\nmake paper        # everything that is not recorded yet; hours\nmake paper-quick  # a smoke "
        "version, in minutes\n```",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
