"""Proposals do not hang on last bits: the same histories, decided with other kernels of the BLAS."""

import pytest
from threadpoolctl import threadpool_info

from benchmarks import processors

EVERY = 17  # histories of 50 and 150 networks among them


def test_another_blas_kernel_changes_no_proposal():
    if "openblas" not in {library.get("internal_api") for library in threadpool_info()}:
        pytest.skip("DID NOT RUN: numpy here has no OpenBLAS, whose kernels could be chosen")
    ours, other = (processors.decided_in(name, EVERY, plain=False) for name in ("as it is", "Prescott"))
    assert not isinstance(ours, str), ours
    assert not isinstance(other, str), other
    assert len(ours) >= 6
    assert [line["proposal"] for line in other] == [line["proposal"] for line in ours]
