"""``nasbot export``: the recommended model of a study, to use elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nasbot.cli._options import Json, Study
from nasbot.cli._output import print_json
from nasbot.errors import OptionError, StudyError

FORMS = "code, onnx, safetensors or json; csv or parquet for the table of trials"


def export(
    study: Study,
    to: Annotated[str, typer.Option(metavar="FORM", help=f"{FORMS}.", show_default=False)],
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="Output file; default: the study's name, in this folder.",
            show_default=False,
        ),
    ] = None,
    single: Annotated[bool, typer.Option("--single", help="Export the best network only, not the ensemble.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="ONNX that takes raw numbers or images.")] = False,
    card: Annotated[bool, typer.Option("--card", help="Also write a model card (Markdown).")] = False,
    metric: Annotated[
        str | None, typer.Option(metavar="M:F", help="The study's metric, if it is your own function.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Overwrite existing files.")] = False,
    as_json: Json = False,
) -> None:
    """Write the recommended model of a study for use elsewhere: its best networks averaged, as one file; or its trials.

    code: one Python file that needs only torch, and its weights. onnx: for onnxruntime and others; with --raw it
    takes numbers as they are in the table and answers in their units. safetensors:
    weights, graphs and preprocessing, for nasbot.load_model and nasbot predict. json: the best network's layer graph
    alone, of any study. All of these but json are checked: what was written must give the model's own outputs. csv and
    parquet: a row for every trial, with its value, times, size, params and numeric details.
    """
    files = _exported(study, to, out, single=single, raw=raw, card=card, metric=metric, overwrite=overwrite)
    if as_json:
        print_json({"form": to, "files": [str(path) for path in files]})
    else:
        print("\n".join(f"wrote {path}" for path in files))


def _exported(
    study: str, to: str, out: str | None, *, single: bool, raw: bool, card: bool, metric: str | None, overwrite: bool
) -> tuple[Path, ...]:
    from nasbot.automl import FoundStudy
    from nasbot.automl.model import file_name
    from nasbot.data.frames import TABLES, write_frame
    from nasbot.storage.addresses import place_of
    from nasbot.study import StudyView

    if raw and to != "onnx":
        raise OptionError(f"raw: expected --to onnx, got {to[:40]!r}")
    if to in TABLES:
        with StudyView.read(study) as view:
            place = out or f"{place_of(study).stem}-trials.{to}"
            return (write_frame(view.to_frame(), place, to=to, overwrite=overwrite),)
    path = out or file_name(place_of(study))
    if to == "json" and not card:  # a study of any objective has networks; only one on data has weights
        from nasbot.exporting.export import export as export_model

        with StudyView.read(study) as view:
            if view.best is None:
                raise StudyError("no trial is completed yet, so there is no network to take away")
            return export_model(view.best.arch, path, to=to, overwrite=overwrite)
    with FoundStudy.open(study, metric=metric) as found:
        return found.export(path, to=to, single=single, raw=raw, card=card, overwrite=overwrite)
