"""Draw the pictures of the documentation: `.venv/bin/python docs/make_pictures.py [folder]`.

docs/images/pools    the twenty networks of the initial pools
docs/images/random   five random networks of 30 to 60 layers
docs/images          the README's picture, and a matching of two pool networks
docs/images/study    every plot of one study, whose trials docs/make_study.py has kept
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from nasbot import explain, synthetic
from nasbot.architecture import Architecture, Layer, SearchSpace, initial_pool
from nasbot.candidate import Candidate
from nasbot.domain import Choice, Fidelity, Float
from nasbot.plots.plot import PLOTS, PlotOptions, plot
from nasbot.plots.snapshot import Snapshot
from nasbot.searchers import NASBOT, RandomSearch
from nasbot.study import maximise
from nasbot.testing.networks import random_architecture
from nasbot.trial import Failed, Forecast, History, Point, Provenance, Scored, Trial

IMAGES = Path(__file__).parent / "images"
RANDOM = (
    ("cnn", 30, 7),
    ("cnn", 45, 1),
    ("cnn", 60, 4),
    ("mlp-class", 38, 5),
    ("mlp-reg", 60, 2),
)  # kind, layers, seed


def figure_1b() -> Architecture:
    """The second network of the paper's first figure: two branches that meet."""
    names = "ip", "conv3 16", "conv3 16", "conv3 16", "conv3 16", "conv5 32", "max-pool", "fc 16", "softmax", "op"
    edges = [(0, 1), (1, 2), (1, 3), (2, 4), (3, 5), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9)]
    return Architecture("cnn", map(layer, names), edges)


def figure_1c() -> Architecture:
    """The third one: three branches and two decision layers."""
    upper = "ip", "conv7 16", "conv5 32", "conv3 16", "conv3 16", "avg-pool", "max-pool", "max-pool", "fc 16"
    lower = "conv3 16", "softmax", "max-pool", "fc 16", "softmax", "op"
    edges = [(0, 1), (1, 2), (1, 3), (1, 4), (2, 5), (3, 6), (4, 7), (5, 8), (7, 9), (8, 10), (8, 13), (9, 11), (6, 12)]
    edges += [(11, 12), (12, 13), (10, 14), (13, 14)]
    return Architecture("cnn", map(layer, (*upper, *lower)), edges)


def layer(text: str) -> Layer:
    """``conv3 16`` as a layer."""
    label, *units = text.split()
    return Layer(label, *map(int, units))


def study_trial(number: int, record: dict) -> Trial:
    """A trial as docs/make_study.py kept it."""
    scored = Scored(record["value"]) if "value" in record else Failed(record["cause"], record["message"])
    return Trial(
        number=number,
        candidate=Candidate(Architecture.from_dict(record["network"])),
        origin=Provenance.from_dict(record["origin"]),
        forecast=Forecast.from_dict(record["forecast"]) if "forecast" in record else None,
        proposed_after=record["after"],
        attempts=1,
        started=record["started"],
        finished=record["finished"],
        rank=record["rank"],
        outcome=scored,
        curve=tuple(Point(*point) for point in record["curve"]),
    )


def other_study(record: dict, settings: dict) -> Snapshot:
    """Another search of the same space, of which only values and times are kept; its networks are never looked at."""
    network = initial_pool("cnn")[0]
    trials = [
        Trial(
            number=n,
            candidate=Candidate(network),
            started=0.0,
            finished=finished,
            rank=n,
            outcome=Failed("nan") if value is None else Scored(value),
        )
        for n, (value, finished) in enumerate(record["finished"])
    ]
    same = record["searcher"] == settings["searcher"]["name"]
    searcher = settings["searcher"] if same else {"name": record["searcher"]}
    return Snapshot(History(tuple(trials)), settings=settings | {"seed": record["seed"], "searcher": searcher})


def kept_study() -> tuple[Snapshot, tuple[Snapshot, ...]]:
    """The study of the gallery, and those that it is compared with."""
    kept = json.loads((IMAGES / "study" / "study.json").read_text())
    settings = kept["shown"]["settings"]
    history = History(tuple(study_trial(n, record) for n, record in enumerate(kept["shown"]["trials"])))
    others = tuple(other_study(record, settings) for record in kept["others"])
    return Snapshot(history, name="demo", settings=settings), others


def draw_study(folder: Path) -> list[Path]:
    """Every plot there is, of one study."""
    shown, others = kept_study()
    options = PlotOptions(against=others)
    with_params = params_study()
    others_shown = {"rungs": rungs_study(), "importance": with_params, "slice": with_params}
    return [plot(others_shown.get(name, shown), name, folder / f"{name}.svg", options=options) for name in PLOTS]


def rungs_study() -> Snapshot:
    """Forty trainings of random networks, in rungs of a ninth, a third and all of the length."""
    space = SearchSpace("cnn")

    def score(arch: Architecture, trial: Any) -> float:
        return synthetic.f1(arch) - 0.3 * (1 - trial.fidelity)

    searcher = RandomSearch(space=space, fidelity=Fidelity())
    study = maximise(score, space, searcher=searcher, budget=40, name=None, progress=False)
    return Snapshot.of(study, name="short trainings")


def params_study() -> Snapshot:
    """Random networks and settings, and what NASBOT makes of them; the objective knows two of the three params."""
    space = SearchSpace("mlp-reg")
    params = {
        "learning_rate": Float(1e-4, 1e-1, log=True, default=1e-2),
        "batch_size": Choice(32, 64, 128, 256, ordered=True, default=64),
        "dropout": Float(0.0, 0.5, default=0.0),
    }

    def score(arch: Architecture, params: Any) -> float:
        rate = np.log10(params["learning_rate"])
        return float(0.7 + 0.02 * len(arch.layers) - 0.1 * (rate + 2.5) ** 2 - 0.0005 * params["batch_size"])

    pool = initial_pool("mlp-reg")[:3]
    drawn = RandomSearch(space=space, params=params, pool=pool)
    study = maximise(score, space, searcher=drawn, budget=40, name=None, progress=False)
    believer = NASBOT(space=space, params=params, pool=pool)
    return Snapshot(study.history, "settings", {**study.settings, "searcher": believer.settings()})


def draw_all(folder: Path) -> list[Path]:
    """Write every picture below a folder; returns their paths."""
    for name in ("pools", "random", "study"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    paths = []
    for short, kind in (("mlp", "mlp-reg"), ("cnn", "cnn")):
        for i, arch in enumerate(initial_pool(kind)):
            paths.append(arch.draw(folder / "pools" / f"{short}-{i}.svg"))
    for kind, n_layers, seed in RANDOM:
        arch = random_architecture(kind, rng=np.random.default_rng(seed), n_layers=n_layers)
        paths.append(arch.draw(folder / "random" / f"{kind}-{n_layers}.svg"))
    names = ("Figure 1 (b)", "Figure 1 (c)")
    b, c = figure_1b(), figure_1c()
    paths.append(explain(b, c, structural_weight=0.5, preset="figure").draw(folder / "readme.svg", names=names))
    pool = initial_pool("cnn")
    paths.append(explain(pool[0], pool[5]).draw(folder / "matching.svg", names=("cnn pool 0", "cnn pool 5")))
    return paths + draw_study(folder / "study")


if __name__ == "__main__":
    for path in draw_all(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES):
        print(path)
