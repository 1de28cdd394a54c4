"""At which share of a full training a candidate is evaluated, by the second step of BOCA (Kandasamy et al. 2017).

The first step chooses x by the acquisition at full fidelity. The second takes the cheapest share s in (0, 1] that is
still informative, or 1 where none is:

    τ(s) > γ(s) = √κ₀ ξ(s) s^q      the posterior standard deviation at (x, s), against what it leaves open
    ξ(s) > max ξ / √β_t             the share is so much cheaper than 1 that it is worth the detour

ξ(s) = √(1 - ρ(s)²) is the information gap, ρ the prior correlation of f(x, s) and f(x, 1); κ₀ is the prior variance
at s = 1, β_t = ½ log(2t + 1), q = 1 / (p + d + 2) with p = 1 dimension of the fidelity. The paper's d is that of a box;
here it is 1 for the network and 1 for each param. All quantities are averaged over samples of the hyper-parameters.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from nasbot.domain import Fidelity
from nasbot.trial import History, Trial

SHARES_PER_RUNG = 4  # the continuum of shares, as a grid of so many between two rungs


def shares_of(fidelity: Fidelity) -> NDArray[np.float64]:
    """The shares (k,) among which one is chosen, ascending; the last is 1."""
    n = SHARES_PER_RUNG * (len(fidelity.rungs) - 1)
    return np.append(fidelity.rungs[0] ** (1.0 - np.arange(n) / n), 1.0)


def unfinished(history: History) -> list[Trial]:
    """Of each candidate known at lower fidelities alone, the completed trial of its highest, as they were recorded.

    Not of those that are pending, or have failed or were stopped at another fidelity.
    """
    stopped = (trial for trial in history.evaluated.trials if trial.value is None)
    busy = {trial.candidate.fingerprint for trial in (*history.pending, *history.failed, *stopped)}
    highest: dict[str, Trial] = {}
    for trial in history.completed:
        known = highest.get(trial.candidate.fingerprint)
        if known is None or trial.fidelity > known.fidelity:
            highest[trial.candidate.fingerprint] = trial
    return [trial for name, trial in highest.items() if trial.fidelity < 1 and name not in busy]


def informative_share(
    shares: NDArray[np.float64],
    sd: NDArray[np.float64],
    gap: NDArray[np.float64],
    prior_sd: NDArray[np.float64],
    *,
    n_evaluated: int,
    n_params: int = 0,
) -> float:
    """The cheapest of ascending shares (k,) that is informative, the last where none is.

    ``sd`` (samples, k) is τ, ``gap`` (samples, k) is ξ, ``prior_sd`` (samples,) is √κ₀.
    """
    q = 1.0 / (4 + n_params)
    beta = 0.5 * math.log(2 * n_evaluated + 1)
    threshold = (prior_sd[:, None] * gap * shares**q).mean(axis=0)
    missed = gap.mean(axis=0)
    is_informative = (sd.mean(axis=0) > threshold) & (missed * math.sqrt(beta) > missed.max())
    return float(shares[np.argmax(is_informative)] if is_informative.any() else shares[-1])
