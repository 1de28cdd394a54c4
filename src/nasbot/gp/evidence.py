"""How likely a kind of rows makes the values seen: what several distances are compared by."""

from __future__ import annotations

from dataclasses import replace

from nasbot.gp.belief import BeliefOptions
from nasbot.gp.fidelity import checked_fidelities, levelled
from nasbot.gp.fit import default_starts, posterior_mode
from nasbot.gp.hyperparameters import FloatArray
from nasbot.gp.likelihood import LogPosterior
from nasbot.gp.rows import Rows, RowScaling
from nasbot.gp.warping import checked_values, warp_values

MOST_STEPS = 20  # of L-BFGS: tables differ by several units of log density, and the mode is known to 0.1 by then


def log_evidence(
    rows: Rows, values: FloatArray, *, options: BeliefOptions, fidelities: FloatArray | None = None
) -> float:
    """log p(values, θ | rows) at the best hyper-parameters θ: their prior and the marginal likelihood.

    To be compared between rows of equal kinds and numbers, for which θ has as many entries under one prior. Draws
    nothing at random.
    """
    form = rows.check_among().form(options.distance_power, options.normalised_power)
    values = checked_values(values, rows.n)
    lower = None if fidelities is None else checked_fidelities(fidelities, rows.n)
    if lower is not None:
        form = replace(form, has_fidelities=True)
        values = levelled(values, lower, rows.same_points)
    powered = RowScaling.of(rows, form).powered(rows)
    target = LogPosterior.of(powered, warp_values(values, options.warp).standardised, form, options.prior, lower)
    return target(posterior_mode(target, default_starts(target, 1).vectors, most_steps=MOST_STEPS).vectors[0])
