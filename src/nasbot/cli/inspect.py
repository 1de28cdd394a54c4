"""``nasbot inspect``: what a search would make of each column of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nasbot.cli._options import As, Drop, ImageSize, Json, parsed_kinds
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_json, print_table
from nasbot.errors import OptionError

PARTS = ("training", "validation", "test")


def inspect(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A table, or a folder of images.")],
    target: Annotated[str | None, typer.Option(metavar="COL", help="The column to predict.")] = None,
    drop: Drop = None,
    kinds: As = None,
    image_size: ImageSize = None,
    as_json: Json = False,
) -> None:
    """Show what each column is taken for, what becomes of it, and what is dropped; of images the classes and sizes."""
    from nasbot.data.files import read_table
    from nasbot.data.inspecting import inspected

    if Path(data).is_dir():
        if target is not None or drop or kinds:
            raise OptionError("--target, --drop, --as: expected with a table, got a folder")
        _inspect_images(data, image_size, as_json=as_json)
        return
    if image_size is not None:
        raise OptionError(f"--image-size: expected with a folder of images, got {data}")
    frame = read_table(Path(data))
    found = inspected(frame, target, drop=drop or (), kinds=parsed_kinds(kinds))
    if as_json:
        print_json({"file": data, "rows": len(frame), "columns": [column.to_dict() for column in found]})
        return
    rows = [[one_line(text) for text in (c.column, c.taken_for, c.becomes, c.note)] for c in found]
    print_table(
        ["column", "taken for", "becomes", "note"], rows, title=one_line(f"{data}: {len(frame):,} rows"), right=False
    )


def _inspect_images(folder: str, size: int | None, *, as_json: bool) -> None:
    from nasbot.data.dataset import read_dataset

    data = read_dataset(folder, image_size=size)
    counts = {
        str(label): [int((part.y == i).sum()) for part in (data.train, data.valid, data.test)]
        for i, label in enumerate(data.preprocessing.classes)
    }
    if as_json:
        classes = {label: dict(zip(PARTS, each, strict=True)) for label, each in counts.items()}
        print_json({"folder": folder, "shape": list(data.input_shape), "classes": classes})
        return
    n = sum(map(sum, counts.values()))
    channels, height, width = data.input_shape
    title = f"{folder}: {n:,} images of {height} x {width}, {channels} channel{'s' * (channels != 1)}"
    rows = [[one_line(label), *(f"{count:,}" for count in each)] for label, each in counts.items()]
    print_table(["class", *PARTS], rows, title=one_line(title))
