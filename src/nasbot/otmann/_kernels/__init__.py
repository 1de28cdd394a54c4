"""Kernels of the distance, plain Python with compiled twins: transport solvers, path lengths, pairs of networks."""
