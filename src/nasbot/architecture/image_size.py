"""Image-size bookkeeping for CNNs (Appendix B.2, "considerations when performing modifications").

Sizes are kept as the factor by which the input has shrunk, so a network needs no input size to be checked: a layer of
stride s turns an image of side n into one of ceil(n / s), and ceil(ceil(n / a) / b) = ceil(n / ab), so equal factors
mean equal images whatever the input.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nasbot.architecture.graph import Architecture


def image_sizes(arch: Architecture, input_size: int) -> tuple[int | None, ...]:
    """For each layer the side of the image leaving it when images of side ``input_size`` come in."""
    return tuple(None if factor is None else -(-input_size // factor) for factor in arch.downsampling)
