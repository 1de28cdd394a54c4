"""``nasbot predict``: what a model says of new rows."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from nasbot._files import file_errors, write_whole
from nasbot.cli._outcome import one_line
from nasbot.errors import FileError, OptionError

if TYPE_CHECKING:
    from nasbot.exporting.model_file import Model
    from nasbot.exporting.predicting import Notes

MODEL = ".safetensors"
OTHER_FORMS = (".py", ".onnx", ".json", ".weights.safetensors")


def predict(
    model: Annotated[
        str,
        typer.Argument(metavar="STUDY|MODEL", help="A study's name or file, or NAME.safetensors.", show_default=False),
    ],
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="New rows: CSV, Parquet or NPZ; or a folder of images.", show_default=False
        ),
    ],
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", metavar="OUT.csv", help="Output file; default: standard output.", show_default=False
        ),
    ] = None,
    single: Annotated[
        bool, typer.Option("--single", help="Predict with the best network only, not the ensemble.")
    ] = False,
    fill_missing: Annotated[
        bool, typer.Option("--fill-missing", help="Treat columns that are not in the file as missing values.")
    ] = False,
    metric: Annotated[
        str | None, typer.Option(metavar="M:F", help="The study's metric, if it is your own function.")
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Also write prediction_low and prediction_high; the truth is between them for this share of rows.",
            show_default=False,
        ),
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Overwrite OUT.csv if it exists.")] = False,
) -> None:
    """Predict the target of new rows, by the recommended model of a study or by one that was exported.

    Writes CSV: one line for each row of the file, in its order, with the column prediction, and for classes
    probability_CLASS for each; for numbers with --interval 0.9 also prediction_low and prediction_high. The columns of
    the file are not repeated. What is odd about it (columns that the model does not know, categories that it has not
    seen) is said on standard error.
    """
    from nasbot.exporting.predicting import predict_file

    taken = _model(model, single=single, metric=metric)
    if out is None:
        notes = predict_file(taken, Path(file), sys.stdout, fill_missing=fill_missing, coverage=interval)
    else:
        options = {"fill_missing": fill_missing, "coverage": interval}
        notes = _written(taken, Path(file), Path(out), options, overwrite=overwrite)
        print(f"wrote {one_line(out)} ({notes.rows:,} rows)")
    for line in notes.lines():
        print(f"nasbot: note: {one_line(line)}", file=sys.stderr)


def _model(where: str, *, single: bool, metric: str | None) -> Model:
    from nasbot.automl import FoundStudy
    from nasbot.exporting.model_file import load_model

    if where.endswith(OTHER_FORMS):
        raise OptionError(
            f"expected a study or a model file (NAME{MODEL}, by nasbot export --to safetensors), got {where}"
        )
    if not where.endswith(MODEL):
        with FoundStudy.open(where, metric=metric) as study:
            return study.model(single=single)
    if single:
        raise OptionError(f"--single chooses among the networks of a study; {where} is a model file")
    return load_model(where)


def _written(model: Model, file: Path, out: Path, options: Mapping[str, Any], *, overwrite: bool) -> Notes:
    """Under another name first: what is there under this one is whole."""
    from nasbot.exporting.predicting import predict_file

    if out.suffix != ".csv":
        raise OptionError(f"--out: expected a name that ends in .csv, got {str(out)[:60]!r}")
    if out.exists() and not overwrite:
        raise FileError(f"{out} is there already; choose another name, or say --overwrite")
    notes: list[Notes] = []

    def write(binary: BinaryIO) -> None:
        with TextIOWrapper(binary, encoding="utf-8", newline="") as stream:
            notes.append(predict_file(model, file, stream, **options))

    with file_errors(f"cannot write {out}"):
        write_whole(out, write)
    return notes[0]
