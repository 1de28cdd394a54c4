"""The paper's claims, what our records say of them, and a verdict; nothing is claimed that was not run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from experiments.ablations import GROUPS, SIGNIFICANT, comparisons
from experiments.experiment import Results
from experiments.fcnet import against as fcnet_against
from experiments.markdown import GENERATED, table
from experiments.nasbench201 import against as nasbench_against

NOT_RUN = "not run"
UNDECIDED = "not decided"
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


CLAIMS = (
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
    Claim("ours", "OTMANN beats the plain distances published as NASBOT (NAS-Bench-201)", "nasbench201", _nasbench),
    Claim("ours", "NASBOT beats random search in the FCNet tables", "fcnet", _fcnet),
)


def summary_page(results: Mapping[str, Results], *, quick: bool = False) -> str:
    """The table of claims, and where each page is."""
    rows = []
    for source, claim, experiment, judge in CLAIMS:
        found = results[experiment]
        finding = judge(found) if found.records else Finding("no records", NOT_RUN)
        n = f"{len(found.records)} of {len(found.protocol.runs())} runs" if found.records else ""
        link = f"[{experiment}]({experiment}.md)"
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
