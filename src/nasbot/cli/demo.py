"""``nasbot demo``: a real search on data that come with scikit-learn, in a few minutes."""

from __future__ import annotations

from typing import Annotated

import typer

from nasbot.cli._options import made_folder
from nasbot.cli._outcome import one_line

DATA = "digits"
BUDGET = "2m"


def demo(
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="DIR", help="Output folder for the study and its pictures.")
    ] = "demo-output",
    budget: Annotated[str, typer.Option(metavar="TIME", help="Total budget: 1m, 10m, or 50 trials.")] = BUDGET,
    workers: Annotated[int | None, typer.Option(help="Networks trained in parallel.")] = None,
) -> None:
    """Search for a network that reads handwritten digits.

    1,797 little images that come with scikit-learn, as a table of pixels. The demo ends with the best network, a
    drawing of it, and the commands to go on; running it again goes on with the same study.
    """
    from nasbot.cli.run import kept_best, print_result, searched
    from nasbot.data.dataset import named_dataset

    folder = made_folder(out)
    study, begun = searched(named_dataset(DATA), budget=budget, workers=workers, name=folder / f"{DATA}.sqlite")
    print_result(study, begun, kept_best(study, begun))
    print(f"Open {one_line(str(study.report()))} in a browser: the whole search on one page.")
