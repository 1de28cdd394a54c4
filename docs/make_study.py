"""Search the synthetic function of the gallery, and keep what its pictures need: `.venv/bin/python docs/make_study.py`.

Writes docs/images/study/study.json, from which docs/make_pictures.py draws. It is kept because proposals may differ in
their last digit from one processor to another, and then in everything after; the pictures should not. About a minute.
"""

import json
import math
from pathlib import Path

from nasbot import EvolutionSearch, RandomSearch, SearchSpace, Study
from nasbot.errors import RefusedError
from nasbot.execution import SimulatedExecutor
from nasbot.searchers import NASBOT
from nasbot.synthetic import Noisy, f1
from nasbot.trial import Cancelled, Failed, Scored

STUDY = Path(__file__).parent / "images" / "study" / "study.json"
N_TRIALS, N_SEEDS, N_WORKERS, N_STEPS = 60, 3, 4, 10


def objective(arch, trial):
    """f1 with noise and a learning curve; some networks diverge, some are refused."""
    draw = int(arch.fingerprint[:8], 16)
    if draw % 13 == 0:
        return math.nan
    if draw % 17 == 0:
        raise RefusedError("training would need 3.1 GiB, the limit is 2 GiB")
    value = Noisy(f1, 0.05, 1)(arch)
    for step in range(1, N_STEPS + 1):
        wobble = 0.04 * math.sin(draw + 2.0 * step)
        trial.report(100 * step, value - 1.5 * (0.55 + 0.2 * (draw % 7) / 7) ** step + wobble * (1 - step / N_STEPS))
    return value


def seconds(arch):
    """Larger networks take longer."""
    return 20.0 + arch.total_mass**0.5 / 10 + len(arch.layers)


def searched(searcher, seed):
    """One study on a simulated clock."""
    study = Study.in_memory(searcher(space=SearchSpace("cnn", input_shape=(3, 32, 32), n_outputs=10)), seed=seed)
    executor = SimulatedExecutor(N_WORKERS, duration=seconds)
    return study.optimise(objective, N_TRIALS, executor=executor, max_consecutive_failures=None)


def record(trial):
    """A trial as plain data, with the digits that a picture can show."""
    outcome = trial.outcome
    ended = (
        {"value": outcome.value}
        if isinstance(outcome, Scored)
        else {"cause": str(outcome.cause), "message": outcome.message}
        if isinstance(outcome, Failed)
        else {"message": outcome.message if isinstance(outcome, Cancelled) else ""}
    )
    return rounded(
        {
            "network": trial.arch.to_dict(),
            "origin": trial.origin.to_dict(),
            **({} if trial.forecast is None else {"forecast": trial.forecast.to_dict()}),
            "after": trial.proposed_after,
            "rank": trial.rank,
            "started": trial.started,
            "finished": trial.finished,
            "curve": [list(point) for point in trial.curve],
            **ended,
        }
    )


def rounded(value):
    """Floats with six significant digits, however deep."""
    if isinstance(value, dict):
        return {key: rounded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(entry) for entry in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def main():
    """The study that is shown, and of the others the values and times."""
    shown, others = None, []
    for searcher in (NASBOT, EvolutionSearch, RandomSearch):
        for seed in range(N_SEEDS):
            study = searched(searcher, seed)
            finished = study.history.finished
            if shown is None:
                shown = {"settings": dict(study.settings), "trials": [record(trial) for trial in study.history]}
            else:
                values = rounded([[trial.value, trial.finished] for trial in finished])
                others.append({"searcher": study.searcher.name, "seed": seed, "finished": values})
            print(study.searcher.name, seed, study.best_value)
    STUDY.parent.mkdir(parents=True, exist_ok=True)
    STUDY.write_text(json.dumps({"shown": shown, "others": others}, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
