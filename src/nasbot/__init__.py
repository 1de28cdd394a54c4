"""nasbot: neural architecture search with Bayesian optimisation and optimal transport.

Every public name is listed once, in ``__init__.pyi``, and loads when it is first asked for. Importing this is quick:
numba, torch and plotting load inside the functions that need them, when they are first called.
"""

from nasbot._display import register
from nasbot._lazy import stubbed

__version__ = "0.1.0"

register(
    {
        "network.draw": "nasbot.drawing.draw:draw",
        "network.svg": "nasbot.drawing.draw:to_svg",
        "matching.draw": "nasbot.drawing.matching:draw_plan",
        "matching.svg": "nasbot.drawing.matching:matching_svg",
        "distances.html": "nasbot.plots.notebook:distances_html",
        "trial.html": "nasbot.plots.notebook:trial_html",
        "study.html": "nasbot.plots.notebook:study_html",
        "model.architecture": "nasbot.tracing.trace:trace",
    }
)

__getattr__, __dir__, __all__ = stubbed(__name__)
__all__ += ["__version__"]
