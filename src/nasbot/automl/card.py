"""A model card, in the form that Hugging Face's hub reads: what a model is, on what it was trained, what it scores."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nasbot._files import write_whole
from nasbot.architecture.resources import resources
from nasbot.automl.members import learned_from_trees, members_of
from nasbot.automl.model import Result, refitted_trials, results_of
from nasbot.errors import FileError
from nasbot.exporting.export import ENDINGS

if TYPE_CHECKING:
    from nasbot.automl.found import FoundStudy
    from nasbot.data.dataset import Dataset
    from nasbot.exporting.model_file import Model

LIMITS = (
    "It was chosen and tested on rows like those above. How it does on others, later ones or those of other origin, "
    "is not known.",
    "The validation score is too good, because it chose the model among many; the test score had no part in that.",
    "Nothing was measured about groups of people in the data, and nothing was done about biases in them.",
)


@dataclass(frozen=True)
class Card:
    """A card and its place, to be written when the model is."""

    path: Path
    text: str

    @classmethod
    def of(cls, study: FoundStudy, model: str | Path, *, form: str, single: bool, overwrite: bool) -> Card:
        """The card of an export to this path; FileError where something is at its place and may not be replaced."""
        target = Path(model)
        name = target.name.removesuffix(ENDINGS[form])
        path = target.with_name(f"{name}.md")
        if path.exists() and not overwrite:
            raise FileError(f"{path} is there already; choose another name, or say overwrite (--overwrite)")
        return cls(path, model_card(study, name=name, form=form, single=single))

    def written(self) -> Path:
        """Its path, after writing it; FileError where that cannot be."""
        try:
            write_whole(self.path, self.text.encode())
        except OSError as error:
            raise FileError(f"cannot write {self.path}: {error.strerror or error}") from None
        return self.path


def model_card(study: FoundStudy, *, name: str, form: str, single: bool = False) -> str:
    """The card of the recommended model, as Markdown with a head of YAML; ``name`` and ``form`` are the export's."""
    data, model, found = study.dataset, study.model(single=single), results_of(study)
    scored = found.single if single else found.model
    assert scored is not None  # there is a model
    lines = [
        *_head(data, name, scored),
        "",
        f"# {name}",
        "",
        f"{_which(model)} of {len(study.history.completed)} that nasbot tried on {data.name}. nasbot is neural "
        "architecture search with Bayesian optimisation and optimal transport.",
        "",
        *_section("Data", _bullets(_data_lines(study, data))),
        *_section("Results", _results_table(study, {"baseline": found.baseline, "this model": scored})),
        *_section("Networks", _networks_table(data, model)),
        *_section("Use", _use_lines(data, name, form)),
        *_section("Limits", _bullets([*study.understanding(single=single).lines(), *LIMITS])),
    ]
    return "\n".join(lines)


def _head(data: Dataset, name: str, scored: Result) -> list[str]:
    """The YAML that the hub reads. Texts are quoted as JSON does, which is YAML, too."""
    task = _task(data)
    score = scored.validation if scored.test is None else scored.test
    rows = "validation" if scored.test is None else "test"
    return [
        "---",
        "library_name: nasbot",
        f"pipeline_tag: {task}",
        "tags: [nasbot, neural-architecture-search, pytorch]",
        "model-index:",
        f"- name: {json.dumps(name)}",
        "  results:",
        f"  - task: {{type: {task}}}",
        f"    dataset: {{name: {json.dumps(data.name)}, type: {json.dumps(data.name)}, split: {rows}}}",
        f"    metrics: [{{type: {json.dumps(scored.metric)}, value: {score:.6g}}}]",
        "---",
    ]


def _task(data: Dataset) -> str:
    form = "image" if data.has_images else "tabular"
    return f"{form}-{'classification' if data.is_classification else 'regression'}"


def _which(model: Model) -> str:
    n = len(model.networks)
    return "The best network" if n == 1 else f"The weighted mean of {n} networks"


def _data_lines(study: FoundStudy, data: Dataset) -> list[str]:
    how = "at random" if data.is_divided_at_random else "by group, by time or by file"
    judged = "validation rows" if study.folds == 1 else f"cross-validation in {study.folds} folds"
    again, members = refitted_trials(study), members_of(study)
    taught, from_trees = members.taught if members is not None else 0.0, learned_from_trees(study)
    targets = f", towards the truth and, by {taught:.0%}, what an ensemble of them said" if taught else ""
    return [
        *data.summary(),
        f"rows were divided {how}, seed {study.seed}; networks were compared by {judged}",
        "the test rows had no part in any choice" if len(data.test) else "there were no test rows",
        *(["some networks learned a part of what trees say of rows that these had not seen"] if from_trees else []),
        *([f"networks were trained once more on training and validation rows together{targets}"] if again else []),
    ]


def _results_table(study: FoundStudy, results: dict[str, Result | None]) -> list[str]:
    metric = study.metric
    lines = [f"`{metric.name}`, {metric.sense}.", "", "| | validation | test |", "|---|---|---|"]
    for name, result in results.items():
        if result is not None:
            test = "–" if result.test is None else f"{result.test:.5g}"
            lines.append(f"| {name} | {result.validation:.5g} | {test} |")
    return lines


def _networks_table(data: Dataset, model: Model) -> list[str]:
    lines = ["| trial | weight | layers | connections | parameters |", "|---|---|---|---|---|"]
    trials = model.details.get("trials")
    numbers = trials if isinstance(trials, list) else [""] * len(model.networks)
    for number, weight, network in zip(numbers, model.weights, model.networks, strict=True):
        size = resources(network.arch, network.input_shape, data.n_outputs)
        layers = len(network.arch.processing_layers)
        lines.append(f"| {number} | {weight:.3f} | {layers} | {len(network.arch.edges)} | {size.parameters:,} |")
    return lines


USE = {
    "safetensors": ("model = nasbot.load_model({file!r})", "model.predict(X)"),
    "code": ("from {name} import load, predict  # needs only torch", "predict(load(), X)"),
    "onnx": ("session = onnxruntime.InferenceSession({file!r})", "session.run(None, {{'x0': prepared}})"),
}


def _use_lines(data: Dataset, name: str, form: str) -> list[str]:
    what = "images" if data.has_images else "rows"
    given = "prepared as the file's metadata say" if form == "onnx" else "as they were given to the search"
    lines = [line.format(name=name, file=f"{name}{ENDINGS[form]}") for line in USE[form]]
    return [f"On {what}, {given}; nothing in the files is pickled:", "", "```python", *lines, "```"]


def _section(title: str, lines: list[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""]


def _bullets(lines: list[str]) -> list[str]:
    return [f"- {line}" for line in lines]
