"""Objectives with curves, in a module that a worker process imports quickly."""

STEPS = (10, 20, 30, 40, 50, 60)


def merit(arch):
    """Deterministic, different for different networks, in [0, 1]."""
    return int(arch.fingerprint[:8], 16) / 2**32


def rising(arch, trial):
    """A curve that rises to its value, the order of networks being the same at every step."""
    for step in STEPS:
        trial.report(step, merit(arch) * step / STEPS[-1])
    return merit(arch)


def falling(arch, trial):
    """The same, to be minimised."""
    for step in STEPS:
        trial.report(step, 2 - merit(arch) * step / STEPS[-1])
    return 2 - merit(arch)
