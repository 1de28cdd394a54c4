"""One BLAS thread while deciding.

OpenBLAS adds in another order with another number of threads: one against two changed results in the tenth digit, and a
slice sampler makes another proposal of that. With one, a proposal does not depend on the machine's cores, and two
workers on two cores do not fight; matrices of a few hundred rows gain next to nothing from a second one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
T = TypeVar("T")


@cache
def _controller() -> ThreadpoolController:
    """Of the BLAS libraries that numpy and scipy have loaded; looking for them takes ten milliseconds, so once."""
    import scipy.linalg  # noqa: F401  so that scipy's own BLAS is among them

    return ThreadpoolController()


def on_one_blas_thread(function: Callable[P, T]) -> Callable[P, T]:
    """The function, during which numpy and scipy use one thread; afterwards as many as before."""

    @wraps(function)
    def limited(*args: P.args, **kwargs: P.kwargs) -> T:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **kwargs)

    return limited
