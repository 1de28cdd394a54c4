"""Several networks as one module: the weighted mean of what they say, each of inputs prepared its own way."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from nasbot.data.preparations import CLIP, Bins, Preparation, Quantile, Robust
from nasbot.errors import OptionError
from nasbot.training.module import Network


class Ensemble(nn.Module):
    """Takes standardised rows, as ``Dataset`` has them; gives what one network gives.

    Numbers are averaged within ``limits``, (2, outputs), so that one network gone wild does not ruin the mean; classes
    by their probabilities: it returns the logarithm of the mean. Its state is that of its members.
    """

    shares: Tensor
    limits: Tensor

    def __init__(
        self,
        networks: Sequence[Network],
        weights: Sequence[float],
        preparations: Sequence[Preparation | None],
        limits: np.ndarray | None = None,
    ) -> None:
        super().__init__()
        if not len(networks) == len(weights) == len(preparations) >= 1:
            raise OptionError(
                "ensemble: expected a weight and a preparation for each network, "
                f"got {len(networks)} networks, {len(weights)} weights and {len(preparations)} preparations"
            )
        if not min(weights) > 0 or not math.isclose(sum(weights), 1.0, abs_tol=1e-6):
            raise OptionError(f"ensemble: expected weights above 0 that add up to 1, got {list(weights)}")
        if len({(network.n_outputs, network.classifies) for network in networks}) != 1:
            raise OptionError("ensemble: expected networks that predict the same; these have different outputs")
        pairs = list(zip(networks, preparations, strict=True))
        shapes = {network.input_shape if step is None else (step.n_inputs,) for network, step in pairs}
        if len(shapes) != 1 or any(step is not None and step.shape != net.input_shape for net, step in pairs):
            raise OptionError("ensemble: expected networks that take the same rows; these have different inputs")
        (self.input_shape,) = shapes
        self.n_outputs, self.classifies = networks[0].n_outputs, networks[0].classifies
        self.weights, self.preparations = tuple(weights), tuple(preparations)
        self.members = nn.ModuleList(networks)
        self.prepare = nn.ModuleList(prepared_by(preparation) for preparation in preparations)
        bounds = np.full((2, self.n_outputs), [[-np.inf], [np.inf]]) if limits is None else np.asarray(limits)
        if bounds.shape != (2, self.n_outputs):
            raise OptionError(f"ensemble: expected limits of shape (2, {self.n_outputs}), got {bounds.shape}")
        self.register_buffer("limits", torch.tensor(bounds, dtype=torch.float64), persistent=False)
        self.register_buffer("shares", torch.tensor(weights, dtype=torch.float64), persistent=False)

    @property
    def networks(self) -> tuple[Network, ...]:
        """The members."""
        return tuple(network for network in self.members if isinstance(network, Network))

    def forward(self, x: Tensor) -> Tensor:
        """Predictions; see the class."""
        said = torch.stack([network(prepare(x)) for network, prepare in zip(self.members, self.prepare, strict=True)])
        shares = self.shares.to(x.dtype)[:, None, None]
        if self.classifies:
            return torch.logsumexp(said + shares.log(), dim=0)
        low, high = self.limits.to(x.dtype)
        return (said.clamp(low, high) * shares).sum(dim=0)


def networks_of(network: Network | Ensemble) -> tuple[Network, ...]:
    """The members of an ensemble, or the network alone."""
    return network.networks if isinstance(network, Ensemble) else (network,)


def prepared_by(preparation: Preparation | None) -> nn.Module:
    """The preparation as a module without parameters, for rows of tensors."""
    return nn.Identity() if preparation is None else Prepared(preparation)


class Prepared(nn.Module):
    """A ``Preparation`` in torch: each output is a function of one input, all of them computed at once.

    Passing inputs are rows of the same tables: a clip that is never reached, a scale of 1.
    """

    source: Tensor

    def __init__(self, preparation: Preparation) -> None:
        super().__init__()
        self.form = preparation.name
        source, rows = [], []
        for _, _, part in preparation.parts():
            for place, row in [(i, None) for i in part] if isinstance(part, range) else _rows(part):
                source.append(place)
                rows.append(row)
        self.register_buffer("source", torch.tensor(source), persistent=False)
        tables = _tables(self.form, rows)
        self.names = tuple(tables)
        for name, table in tables.items():
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(table)), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Standardised rows as the network sees them."""
        columns = x.index_select(1, self.source)
        tables: dict[str, Tensor] = {name: self.get_buffer(name).to(x.dtype) for name in self.names if name != "passes"}
        if self.form == Robust.form:
            z = (columns - tables["centre"]) / tables["scale"]
            return z / torch.sqrt(1 + (z * tables["sharpness"]) ** 2)
        if self.form == Bins.form:
            share = ((columns - tables["low"]) / tables["width"]).clamp(0, 1)
            return torch.where(self.get_buffer("passes"), columns, 2 * share - 1)
        knots, scores = tables["knots"], tables["scores"]
        k = torch.searchsorted(knots, columns.t().contiguous()).clamp(1, knots.shape[1] - 1)
        low, high = knots.gather(1, k - 1), knots.gather(1, k)
        share = ((columns.t() - low) / (high - low)).clamp(0, 1)
        between = scores.gather(1, k - 1) + share * (scores.gather(1, k) - scores.gather(1, k - 1))
        return torch.where(self.get_buffer("passes"), columns, between.t())


_Row = tuple[tuple[float, ...], ...]


def _rows(number: Robust | Quantile | Bins) -> list[tuple[int, _Row]]:
    """The outputs of one number: its input, and the numbers of its function."""
    if isinstance(number, Robust):
        return [(number.input, ((number.centre, number.scale),))]
    if isinstance(number, Quantile):
        return [(number.input, (number.knots, number.scores))]
    return [(number.input, ((low, high - low),)) for low, high in zip(number.edges, number.edges[1:], strict=False)]


def _tables(form: str, rows: Sequence[_Row | None]) -> dict[str, np.ndarray]:
    passes = np.array([row is None for row in rows])
    if form != Quantile.form:
        pairs = np.array([(0.0, 1.0) if row is None else row[0] for row in rows], dtype=np.float32)
        if form == Robust.form:
            sharpness = np.where(passes, 0.0, 1 / CLIP).astype(np.float32)
            return {"centre": pairs[:, 0], "scale": pairs[:, 1], "sharpness": sharpness}
        return {"low": pairs[:, 0], "width": pairs[:, 1], "passes": passes}
    most = max((len(row[0]) for row in rows if row is not None), default=2)
    # Shorter tables go on with knots far beyond, at the last score.
    knots, scores = np.zeros((len(rows), most), np.float32), np.zeros((len(rows), most), np.float32)
    for i, row in enumerate(rows):
        own, heights = ((0.0, 1.0), (0.0, 0.0)) if row is None else row
        beyond = own[-1] + (1.0 + abs(own[-1])) * np.arange(1, most - len(own) + 1)
        knots[i], scores[i] = [*own, *beyond], [*heights, *[heights[-1]] * (most - len(own))]
    return {"knots": knots, "scores": scores, "passes": passes}
