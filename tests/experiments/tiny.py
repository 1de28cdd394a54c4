"""Every experiment at the smallest size at which it still is one: seconds, where --quick takes minutes."""

from dataclasses import replace

from experiments.protocol import Protocol, read_protocol

# name -> settings and runs that differ from those of --quick
# Searches end after so many trials, never by the clock.
MLP = {
    "seconds": 3600.0,
    "trials": 5,
    "pool_size": 3,
    "rows": 200,
    "recipe": {"name": "fast", "n_steps": 4},
    "trees": 5,
}
CNN = {
    "seconds": 3600.0,
    "trials": 4,
    "pool_size": 3,
    "images": [60, 30, 30],
    "recipe": {"name": "fast", "n_steps": 2},
    "retraining_recipe": {"name": "fast", "n_steps": 2},
}
TINY: dict[str, tuple[dict, dict]] = {
    "regression": (MLP, {"dataset": ["diabetes"], "method": ["NASBOT", "TreeBO"]}),
    "cifar10": (CNN, {"method": ["NASBOT", "EA"]}),
    "alternatives": (MLP, {}),
    "smoothness": (
        {"rows": 200, "recipe": {"name": "fast", "n_steps": 4}},
        {"network": list(range(5)), "dataset": ["diabetes"]},
    ),
    "best-networks": ({}, {}),
    "ablations": (
        {"evaluations": 11},
        {"seed": [0], "method": ["paper's masses", "units only", "p=2 p_bar=2"]},
    ),
    "distance-map": ({"networks": 14}, {}),
    "nasbench201": ({"queries": 11}, {"seed": [100], "method": ["nasbot", "evolution"]}),
    "fcnet": ({"queries": 11}, {"seed": [0], "method": ["NASBOT", "EA"]}),
}
NEED_SHARED = {"nasbench201", "fcnet"}  # tables of other people's experiments


def tiny(name: str) -> Protocol:
    """The protocol of an experiment, made tiny."""
    protocol = read_protocol(name, quick=True)
    settings, axes = TINY.get(name, ({}, {}))
    return replace(protocol, settings={**protocol.settings, **settings}, axes={**protocol.axes, **axes})
