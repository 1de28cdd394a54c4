"""Compiled kernels, the only home of numba: transport solvers, path lengths, pairs of networks."""
