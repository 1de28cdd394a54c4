"""A Gaussian process on any distances you have, with scikit-learn manners.

Nothing here is about networks: edit distances between molecules, warping distances between time series or
OTMANN distances between networks all do. The kernel is eq. (7), which turns distances into similarities.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from nasbot.errors import NasbotError, OptionError
from nasbot.gp.belief import Belief, BeliefOptions, fit_belief
from nasbot.gp.hyperparameters import FloatArray
from nasbot.gp.mixture import mixture_moments
from nasbot.gp.posterior import Prediction
from nasbot.gp.repair import Repairs
from nasbot.gp.rows import InvalidDistancesError, Rows
from nasbot.gp.warping import checked_values

if TYPE_CHECKING:
    from sklearn.utils import Tags


class NotFittedError(NasbotError, ValueError, AttributeError):
    """A prediction was asked of a `GraphGP` that has not been fitted. Bases as in scikit-learn's error of that name."""


class GraphGP:
    """Gaussian process regression on precomputed distances.

    ``fit(D, y)`` takes the distances among the n training points, (n, n), or several kinds of them, (weights, n, n);
    ``predict(D_cross)`` those from m new points to the training points, (m, n) or (weights, m, n): new points in rows,
    as scikit-learn has it for precomputed kernels. So ``cross_val_score(GraphGP(), D, y)`` works on an (n, n) array.
    A second array ``D_bar`` adds the second term of eq. (7).

    Parameters (all keyword-only)
    inference          "sample": average over posterior samples of the hyper-parameters; "map": their mode alone, faster
    n_samples          how many samples
    sample_up_to       with more training points than this the mode is used in either case
    warp               "none", "rank", "best" or "log" (``warping.py``). Under all but "none" predictions are the median
                       and half the width of the central 68 % interval, because only quantiles survive a warp
    distance_power     p of eq. (7), for D
    normalised_power   p̄ of eq. (7), for D_bar
    random_state       None, an int or a numpy Generator; used only by "sample"

    Fitted attributes
    belief_            the `Belief`: samples, calibration, intervals, pending points
    repairs_           what had to be mended in fitting (`Repairs`); ``belief_.predict`` reports its own
    n_features_in_     n, as scikit-learn counts precomputed distances
    """

    def __init__(
        self,
        *,
        inference: str = "sample",
        n_samples: int = 10,
        sample_up_to: int = 300,
        warp: str = "none",
        distance_power: float = 1.0,
        normalised_power: float = 1.0,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.inference = inference
        self.n_samples = n_samples
        self.sample_up_to = sample_up_to
        self.warp = warp
        self.distance_power = distance_power
        self.normalised_power = normalised_power
        self.random_state = random_state

    def fit(self, D: ArrayLike, y: ArrayLike, D_bar: ArrayLike | None = None) -> Self:
        """Learn from values y (n,) at points with these distances among them."""
        options = BeliefOptions(
            inference=self.inference,  # type: ignore[arg-type]  # strings are options' to judge
            warp=self.warp,  # type: ignore[arg-type]
            distance_power=self.distance_power,
            normalised_power=self.normalised_power,
            n_samples=self.n_samples,
            sample_up_to=self.sample_up_to,
        )
        rng = np.random.default_rng(self.random_state)
        self.belief_: Belief = fit_belief(Rows.of(D, D_bar), checked_values(y), options=options, rng=rng)
        self.repairs_: Repairs = self.belief_.repairs
        self.n_features_in_: int = len(self.belief_.values)
        return self

    def predict(
        self,
        D_cross: ArrayLike,
        return_std: bool = False,
        *,
        D_bar_cross: ArrayLike | None = None,
        include_noise: bool = False,
    ) -> FloatArray | tuple[FloatArray, FloatArray]:
        """Predicted values (m,) in the units of y, and their standard deviations (m,) if asked for.

        The deviation is that of the function itself; ``include_noise`` makes it that of a new noisy observation of it.
        """
        belief = self._fitted()
        form, known = belief.scaling.form, belief.posterior.n_known
        cross = Rows.of(
            _known_first(D_cross, "D_cross", form.n_weights, known),
            _known_first(D_bar_cross, "D_bar_cross", form.n_normalised_weights, known),
        )
        prediction = belief.predict(cross)
        if include_noise:
            noisy = prediction.variance + belief.posterior.noise_variance[:, None]
            prediction = prediction._replace(variance=noisy)
        mean, deviation = _in_own_units(belief, prediction)
        return (mean, deviation) if return_std else mean

    def score(self, D_cross: ArrayLike, y: ArrayLike, *, D_bar_cross: ArrayLike | None = None) -> float:
        """R², the share of the variance of y (m,) that predictions explain, as scikit-learn's regressors."""
        mean = np.asarray(self.predict(D_cross, D_bar_cross=D_bar_cross))
        values = checked_values(y, len(mean))
        total = float(((values - values.mean()) ** 2).sum())
        missed = float(((values - mean) ** 2).sum())
        return 1.0 - missed / total if total > 0.0 else float(missed == 0.0)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Constructor arguments by name."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Change constructor arguments by name."""
        known = self.get_params()
        if unknown := sorted(params.keys() - known.keys()):
            raise OptionError(f"GraphGP has no parameter {', '.join(unknown)}; it has {', '.join(known)}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"GraphGP({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"

    def __sklearn_tags__(self) -> Tags:
        """What scikit-learn asks of an estimator; imported only when scikit-learn itself calls."""
        from sklearn.utils import InputTags, RegressorTags, Tags, TargetTags

        inputs = InputTags(pairwise=True, positive_only=True)
        target = TargetTags(required=True)
        return Tags(estimator_type="regressor", target_tags=target, input_tags=inputs, regressor_tags=RegressorTags())

    def _fitted(self) -> Belief:
        belief: Belief | None = getattr(self, "belief_", None)
        if belief is None:
            raise NotFittedError("this GraphGP is not fitted yet; call fit(D, y) before predict or score")
        return belief


def _known_first(array: ArrayLike | None, name: str, n_weights: int, n: int) -> FloatArray | None:
    """scikit-learn's (weights, m new, n known) as the belief's (weights, n known, m new)."""
    if array is None or n_weights == 0:
        return None if array is None else np.asarray(array)  # the belief says what is wrong with a kind it never saw
    distances = np.asarray(array)
    distances = distances[None] if distances.ndim == 2 else distances
    if distances.ndim != 3 or (distances.shape[0], distances.shape[2]) != (n_weights, n):
        hint = " (it looks transposed)" if distances.shape[:2] == (n_weights, n) else ""
        raise InvalidDistancesError(
            f"{name} must hold distances from new points (rows) to the training points (columns), shape "
            f"({n_weights}, m, {n}){f' or (m, {n})' if n_weights == 1 else ''}, got {np.shape(array)}{hint}"
        )
    return distances.transpose(0, 2, 1)


def _in_own_units(belief: Belief, prediction: Prediction) -> tuple[FloatArray, FloatArray]:
    if belief.warped.is_affine:
        mean, variance = mixture_moments(prediction.mean, prediction.variance)
        return belief.warped.inverse(mean), np.sqrt(variance) * belief.warped.slope
    lower, median, upper = belief.interval(prediction, level=0.6827)
    return median, 0.5 * (upper - lower)
