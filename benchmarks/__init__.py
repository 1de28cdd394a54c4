"""What the package costs and how well it searches. Everybody computes on one thread, unless a benchmark says otherwise.

It is said here because it must be said before numpy is imported.
"""

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
