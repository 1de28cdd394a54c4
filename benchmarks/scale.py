"""What a study of many networks costs: ``python -m benchmarks.scale --networks 10000 --json``.

A study in a temporary file is filled with networks grown by mutation and values of a synthetic function, opened again
as after an interruption, and asked for proposals. ``proposal_seconds`` is the median of a few proposals that are
evaluated in between, once the searcher has decided once; ``ask100_seconds`` those of 100 workers asking at once. Each
is also given in CPU seconds of this process, which is what counts on a machine that others use.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import count, islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy.stats import norm, spearmanr

from nasbot.architecture import Architecture, SearchSpace, initial_pool
from nasbot.candidate import Candidate
from nasbot.evolution import Mutation, MutationOperator
from nasbot.gp.warping import Warp, warp_values
from nasbot.otmann import NeighbourIndex
from nasbot.searchers import NASBOT
from nasbot.searchers.effect import Effect
from nasbot.searchers.knowledge import Stopwatch
from nasbot.storage import open_storage
from nasbot.study import Study
from nasbot.synthetic import SYNTHETIC
from nasbot.trial import History, Scored, Trial

KIND, FUNCTION = "mlp-reg", "f2"
N_PROPOSALS = 5
N_WORKERS = 100
MOST_LAYERS = 30
PER_WRITE = 1000  # trials
MOST_COMPARED = 20_000  # networks of an index whose answers are compared with all distances


def main() -> None:
    """Print the figures, as JSON in the last line where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=1000, help="Evaluated networks in the study.")
    parser.add_argument("--asks", type=int, default=N_WORKERS, help="Workers that ask at once.")
    parser.add_argument("--index", action="store_true", help="Measure the neighbour index alone.")
    parser.add_argument("--accuracy", action="store_true", help="Compare predictions with those of the exact GP.")
    parser.add_argument("--queries", type=int, default=100, help="With --index and --accuracy: networks asked about.")
    parser.add_argument("--json", action="store_true", help="Print the figures as one line of JSON.")
    parser.add_argument("--figure", type=Path, metavar="RECORDS", help="Draw what --json printed, one line a size.")
    parser.add_argument("--out", type=Path, default=Path("scale.svg"), help="With --figure: where to.")
    options = parser.parse_args()
    if options.figure:
        draw(options.figure, options.out)
        return
    if options.index:
        figures = indexed(options.networks, options.queries)
    elif options.accuracy:
        figures = predicted(options.networks, options.queries)
    else:
        figures = measured(options.networks, options.asks)
    if not options.json:
        print("\n".join(f"{name:18} {value:10.3g}" for name, value in figures.items()))
    else:
        print(json.dumps(figures))


def measured(n: int, n_asks: int = N_WORKERS) -> dict[str, float]:
    """The figures for a study of n evaluated networks."""
    with tempfile.TemporaryDirectory(prefix="nasbot-scale-") as folder:
        file = Path(folder) / "scale.db"
        filling = get_context("spawn").Process(target=fill, args=(file, n))  # its memory is not the study's
        filling.start()
        filling.join()
        resuming = _Clock()
        study = Study.open(file, _searcher())
        resuming.stop()
        clocks = [_decided(study) for _ in range(1 + N_PROPOSALS)]
        asking = _Clock()
        study.ask(n_asks)
        asking.stop()
        study.close()
    return {
        "networks": n,
        **_figures("proposal", clocks[1:]),
        **_figures("first_proposal", clocks[:1]),
        **_figures(f"ask{n_asks}", [asking]),
        **_figures("resume", [resuming]),
        "peak_mb": _peak_mb(),
    }


class _Clock:
    """Seconds that pass, and those of this process alone: on a busy machine the latter say what something costs."""

    def __init__(self) -> None:
        self.wall, self.cpu = time.perf_counter(), time.process_time()

    def stop(self) -> None:
        self.wall, self.cpu = time.perf_counter() - self.wall, time.process_time() - self.cpu


def _figures(name: str, clocks: Sequence[_Clock]) -> dict[str, float]:
    return {
        f"{name}_seconds": round(float(np.median([clock.wall for clock in clocks])), 3),
        f"{name}_cpu_seconds": round(float(np.median([clock.cpu for clock in clocks])), 3),
    }


def _peak_mb() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def draw(records: Path, out: Path) -> None:
    """CPU seconds against evaluated networks, both on logarithmic axes."""
    from matplotlib.figure import Figure

    lines = sorted((json.loads(line) for line in records.read_text().splitlines()), key=lambda line: line["networks"])
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="evaluated networks", ylabel="CPU seconds")
    names = {
        "proposal": "a proposal",
        "ask100": "100 workers at once",
        "first_proposal": "first proposal",
        "resume": "resume",
    }
    for name, label in names.items():
        axes.plot(
            [line["networks"] for line in lines], [line[f"{name}_cpu_seconds"] for line in lines], "o-", label=label
        )
    axes.legend()
    figure.savefig(out, metadata={"Date": None})


def indexed(n: int, n_queries: int, k: int = 64) -> dict[str, float]:
    """What a query among n networks of 10 to 30 layers costs, and how many of the exact distances; CPU seconds.

    Queries are changed networks of the index, as the candidates of a search are. Up to 20,000 networks every answer is
    compared with that of all distances.
    """
    known = list(islice((arch for arch in _networks(10 * n, list(initial_pool(KIND))) if len(arch.layers) >= 10), n))
    rng, operator = np.random.default_rng(1), MutationOperator(SearchSpace(KIND))
    made = (operator(known[rng.integers(n)], rng=rng) for _ in count())
    asked = list(islice((change.arch for change in made if isinstance(change, Mutation)), n_queries))
    NeighbourIndex(known[:100]).query(asked[:1], k)  # compiled
    begun = time.process_time()
    index = NeighbourIndex(known)
    building = time.process_time() - begun
    begun, wall = time.process_time(), time.perf_counter()
    found = [index.query([arch], k) for arch in asked]
    asking, waiting = time.process_time() - begun, time.perf_counter() - wall
    figures = {
        "networks": n,
        "queries": n_queries,
        "neighbours": k,
        "build_seconds": round(building, 3),
        "query_ms": round(1000 * asking / n_queries, 2),
        "query_ms_wall": round(1000 * waiting / n_queries, 2),
        "exact_share": round(sum(each.n_exact for each in found) / n_queries / n, 5),
        "peak_mb": _peak_mb(),
    }
    if n <= MOST_COMPARED:
        packed = index.distance.pack(known)
        same = 0
        for arch, each in zip(asked, found, strict=True):
            d = index.distance.cross([arch], packed).d.mean(axis=0)[0]
            same += bool((np.lexsort((np.arange(n), d))[:k] == each.numbers[0]).all())
        figures["exact_answers"] = same
    return figures


def predicted(n: int, n_queries: int) -> dict[str, float]:
    """Predictions of networks that were not evaluated, by the local belief and by the exact GP on all n.

    Both have the hyper-parameters of the local one. Log densities are of the true values in standardised units.
    """
    networks = list(_networks(n + n_queries, list(initial_pool(KIND))))
    order = np.random.default_rng(2).permutation(len(networks))
    known, asked = [networks[i] for i in order[:n]], [networks[i] for i in order[n:]]
    trials = [Trial(number=i, candidate=Candidate(arch)).begun(0.0) for i, arch in enumerate(known)]
    history = History(t.ended(Scored(_value(t.arch)), at=1.0, rank=t.number) for t in trials)
    searcher, candidates = _searcher(), [(Candidate(arch), "") for arch in asked]
    local = searcher.believed(history, candidates, rng=np.random.default_rng(0))
    exact = exact_effects(searcher, history, candidates)
    values = np.sort(history.evaluated.values)
    truth = np.array([_value(arch) for arch in asked])
    standardised = np.interp(truth, values, np.sort(warp_values(history.evaluated.values, Warp.RANK).standardised))
    figures: dict[str, float] = {"networks": n, "queries": n_queries}
    for name, effects in (("local", local), ("exact", exact)):
        mean, sd = (np.array([getattr(effect, part) for effect in effects]) for part in ("mean", "observed_sd"))
        figures[f"{name}_rank_correlation"] = round(float(spearmanr(mean, truth).statistic), 4)
        figures[f"{name}_log_density"] = round(float(norm.logpdf(standardised, mean, sd).mean()), 4)
    return figures


def exact_effects(searcher: NASBOT, history: History, asked: Sequence[tuple[Candidate, str]]) -> list[Effect]:
    """What the searcher would say with the same hyper-parameters and all evaluated networks known at once."""
    for_belief, _, _ = np.random.default_rng(0).spawn(3)  # as ``believed`` has it
    view = searcher._knowledge.view(history, for_belief, Stopwatch())
    assert view is not None
    known = tuple(history.evaluated.candidates)
    every, rows = np.arange(len(known)), searcher._knowledge.rows_among(known)
    belief = view.belief.knowing_only(every, rows)
    exact = searcher._knowledge.asked(belief, every, known, len(known), len(known), rows)
    return list(searcher._knowledge.effects(exact, history, asked))


def fill(file: Path, n: int) -> None:
    """A study of n evaluated networks: the pool, and networks made from it by mutation."""
    Study.open(file, _searcher()).close()
    storage = open_storage(file)
    try:
        made = _networks(n, [trial.arch for trial in storage.history()])
        for first in range(0, n, PER_WRITE):
            history = storage.history()
            trials = []
            for number in range(first, min(n, first + PER_WRITE)):
                arch = next(made)
                known = number < len(history)
                trial = history[number] if known else Trial(number=number, candidate=Candidate(arch))
                trials.append(trial.begun(float(number)))
            ended = [t.ended(Scored(_value(t.arch)), at=t.number + 1.0, rank=t.number) for t in trials]
            storage.save(*trials, *ended)
    finally:
        storage.close()


def _searcher() -> NASBOT:
    return NASBOT(space=SearchSpace(KIND))


def _networks(n: int, pool: list[Architecture]) -> Iterator[Architecture]:
    rng, operator = np.random.default_rng(0), MutationOperator(SearchSpace(KIND))
    found = list(pool)
    fingerprints = {arch.fingerprint for arch in pool}
    yield from pool
    while len(found) < n:
        made = operator(found[rng.integers(len(found))], rng=rng)
        if not isinstance(made, Mutation) or len(made.arch.layers) > MOST_LAYERS:
            continue
        if made.arch.fingerprint not in fingerprints:
            fingerprints.add(made.arch.fingerprint)
            found.append(made.arch)
            yield made.arch


def _decided(study: Study) -> _Clock:
    clock = _Clock()
    trial = study.ask()
    clock.stop()
    study.tell(trial, _value(trial.arch))
    return clock


def _value(arch: Architecture) -> float:
    return float(SYNTHETIC[FUNCTION](arch))


if __name__ == "__main__":
    main()
