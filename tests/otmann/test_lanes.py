"""What the lanes compile to against what they mean."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

from nasbot.otmann._kernels import (
    lane_code,  # noqa: F401  # registers what they compile to
    lanes,
)

N = 5 * lanes.LANES


def arrays(seed: int) -> list[np.ndarray]:
    """Three of numbers with many ties, zeros of both signs among them."""
    rng = np.random.default_rng(seed)
    return [rng.integers(-4, 5, N) / 4 * rng.choice([-0.0, 1.0], N) for _ in range(3)]


def whole(numbers: np.ndarray) -> np.ndarray:
    return (4 * numbers).astype(np.int32)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    @njit  # type: ignore[untyped-decorator]
    def call(*arguments: Any) -> Any:
        return function(*arguments)

    return call  # type: ignore[no-any-return]


CASES: dict[Callable[..., Any], Callable[[list[np.ndarray]], tuple[Any, ...]]] = {
    lanes.any_below: lambda x: (x[0], 3, x[1], 17, 48, -1.75),
    lanes.lanes_equal: lambda x: (x[0], 3, x[1], 17, 0.25),
    lanes.least_of_lanes: lambda x: (x[0], 3, x[1], 17, 48),
    lanes.add_to_lanes: lambda x: (x[0], 5, 0b1010_0000_1111_0001 | 1 << 20, 0.3),
    lanes.copy_lanes: lambda x: (x[0], 1, x[1], 18),
    lanes.set_lanes: lambda x: (x[0], 1, x[1], 0, x[2], 19, 0.7),
    lanes.set_structural_costs: lambda x: (
        *(x[0], 2, whole(x[1]), 1, whole(x[2]), 0, x[1], 1, x[2], 0),
        *(5, 4, 3, 0.1),
    ),
    lanes.clear_lanes: lambda x: (x[0], 9),
    lanes.first_bit: lambda x: (0b1011000,),
}


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_compiled_lanes_do_what_the_python_says(function: Callable[..., Any]) -> None:
    fast = compiled(function)
    for seed in range(20):
        given, other = arrays(seed), arrays(seed)
        assert fast(*CASES[function](given)) == function(*CASES[function](other))
        np.testing.assert_array_equal(given, other)
