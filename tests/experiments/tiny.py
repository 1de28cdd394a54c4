"""Every experiment at the smallest size at which it still is one: seconds, where --quick takes minutes."""

from dataclasses import replace

from experiments.protocol import Protocol, read_protocol

# name -> settings and runs that differ from those of --quick
TINY: dict[str, tuple[dict, dict]] = {
    "ablations": ({"evaluations": 11}, {"seed": [0], "method": ["NASBOT", "units only", "p=2 p_bar=2"]}),
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
