"""What a training will cost, known from the graph alone, and the refusal of what costs too much."""

from __future__ import annotations

from dataclasses import dataclass

from nasbot.architecture import Architecture, resources
from nasbot.errors import RefusedError
from nasbot.training.recipes import Settings

# Measured on one core of a server of 2024, single precision; other machines are within a factor of three. A layer costs
# time however small it is, and large ones are bound by arithmetic.
FLOPS_PER_SECOND = 5e10
SECONDS_PER_LAYER = 4e-5
# One pass forward and two back: gradients of the inputs and of the weights.
PASSES = 3


@dataclass(frozen=True)
class Estimate:
    """Of one training. ``seconds`` is rough, the rest is exact or a bound (see ``architecture.resources``)."""

    parameters: int
    flops_per_step: float
    activation_bytes: int  # of one batch
    memory_bytes: int
    batch_size: int
    steps: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.parameters:,} parameters, {self.flops_per_step:.3g} floating-point operations a step, "
            f"{self.memory_bytes / 1e6:,.0f} MB of memory, about {self.seconds:,.0f} s for {self.steps:,} steps"
        )


def estimate(
    arch: Architecture, settings: Settings, *, input_shape: tuple[int, ...], n_outputs: int, n_samples: int
) -> Estimate:
    """What training ``arch`` on ``n_samples`` samples with these settings costs."""
    needs = resources(arch, input_shape, n_outputs)
    batch = settings.batch_size_for(n_samples)
    flops = float(PASSES * needs.flops * batch)
    steps = settings.steps(n_samples, flops)
    seconds = steps * (flops / FLOPS_PER_SECOND + SECONDS_PER_LAYER * len(arch.layers))
    return Estimate(
        needs.parameters,
        flops,
        needs.activation_bytes * batch,
        needs.memory_bytes(batch),
        batch,
        steps,
        seconds,
    )


def check_affordable(expected: Estimate, settings: Settings) -> None:
    """Raise RefusedError, with the numbers and the setting to change, where a limit of the settings is crossed."""
    for name, needed, limit, advice in (
        ("max_parameters", expected.parameters, settings.max_parameters, ""),
        ("max_memory", expected.memory_bytes, settings.max_memory, ", or lower batch_size"),
        ("max_seconds", expected.seconds, settings.max_seconds, ", or lower n_steps or max_steps"),
    ):
        if limit is not None and needed > limit:
            raise RefusedError(
                f"the network is too large to train here: {name.removeprefix('max_')} {needed:.4g} > {limit:.4g} "
                f"({expected}); raise {name} of the recipe{advice}"
            )
