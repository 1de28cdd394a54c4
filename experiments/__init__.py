"""The paper's experiments, run for real and written up from what was recorded: ``python -m experiments``.

Importing ``benchmarks`` first lets everybody compute on one thread, which must be said before numpy is imported.
"""

import benchmarks as benchmarks
