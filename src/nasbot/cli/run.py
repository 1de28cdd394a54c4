"""``nasbot run``: from a file of data to the best network found within a budget."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nasbot._files import file_errors
from nasbot.cli._options import As, Drop, ImageSize, Json, parsed_kinds
from nasbot.cli._outcome import one_line
from nasbot.cli._output import print_json
from nasbot.errors import FileError, OptionError, StudyError

if TYPE_CHECKING:
    from nasbot.architecture import Architecture
    from nasbot.automl import FoundStudy, Prepared
    from nasbot.data.dataset import Dataset
    from nasbot.trial import Trial

Target = Annotated[
    list[str] | None,
    typer.Option(metavar="COL", help="The column to predict (of an NPZ file: the array); may be repeated."),
]
BudgetText = Annotated[
    str, typer.Option("--budget", metavar="TIME", help="Total budget over all runs: 10m, 1h30m, or 50 trials.")
]
Workers = Annotated[int | None, typer.Option(help="Networks trained in parallel; default: one per GPU, or by cores.")]
MetricName = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="What networks are chosen by: auc, f1, mae, …, or MODULE:FUNCTION; default: validation loss.",
    ),
]
Seed = Annotated[int, typer.Option(help="Random seed (data split, initial weights, search).")]


def run(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A CSV, Parquet or NPZ file, a folder of images, or a named set such as digits.",
            show_default=False,
        ),
    ],
    target: Target = None,
    budget: BudgetText = "10m",
    metric: MetricName = None,
    workers: Workers = None,
    seed: Seed = 0,
    name: Annotated[
        str | None, typer.Option(help="Name of the study, its file or address; default: from the data.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="regression or classification; inferred by default.")] = None,
    drop: Drop = None,
    kinds: As = None,
    drop_unlabelled: Annotated[
        bool, typer.Option("--drop-unlabelled", help="Leave out rows that have no target, instead of refusing them.")
    ] = False,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="Group column: rows with one value stay in one part of the split; not an input."
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Split by time: train on the first rows by this column, test on the last."),
    ] = None,
    weight: Annotated[
        str | None,
        typer.Option(metavar="COL", help="How much each row counts, in loss and metrics; not an input."),
    ] = None,
    class_weight: Annotated[
        str | None,
        typer.Option(metavar="WEIGHTS", help="How much classes count in the loss: balanced, none, or rare=5,common=1."),
    ] = None,
    valid: Annotated[str | None, typer.Option(metavar="FILE", help="Validation rows, with DATA's columns.")] = None,
    test: Annotated[str | None, typer.Option(metavar="FILE", help="Test rows, with DATA's columns.")] = None,
    split: Annotated[str, typer.Option(help="Shares for training, validation and test.")] = "0.6,0.2,0.2",
    recipe: Annotated[str, typer.Option(help="How networks are trained: fast or paper.")] = "fast",
    searcher: Annotated[str, typer.Option(help="nasbot, random, evolution or treebo.")] = "nasbot",
    tune: Annotated[
        str, typer.Option(help="Params searched with the network: auto, none, or names such as learning_rate,dropout.")
    ] = "auto",
    fidelity: Annotated[
        str,
        typer.Option(
            metavar="OF", help="Short trainings decide who gets a full one: steps, rows (fewer) or boca; or none."
        ),
    ] = "none",
    pacer: Annotated[
        str, typer.Option(help="End trainings that fall behind the others at the same step: none or median.")
    ] = "none",
    attributes: Annotated[
        str,
        typer.Option(
            metavar="LIST", help="Options of single layers to search: all, none, or some of dropout,norm,weight_decay."
        ),
    ] = "none",
    vocabulary: Annotated[
        str | None,
        typer.Option(metavar="MODULE:NAME", help="Search networks of this vocabulary of your own; needs --pool."),
    ] = None,
    pool: Annotated[
        str, typer.Option(help="Networks to begin with: default (plain ones), paper, or MODULE:NAME of a list.")
    ] = "default",
    folds: Annotated[
        str, typer.Option(metavar="K", help="Folds of a cross-validation; 1 for none, auto: 5 where rows are few.")
    ] = "auto",
    yardstick: Annotated[
        bool, typer.Option("--yardstick/--no-yardstick", help="Show what trees reach in 4 % of the time.")
    ] = True,
    refit: Annotated[
        bool, typer.Option("--refit/--no-refit", help="At the end train the model on validation rows too.")
    ] = True,
    seconds_per_trial: Annotated[
        float | None, typer.Option(metavar="S", help="Time limit per training; default: from the budget.")
    ] = None,
    start_from: Annotated[
        str | None, typer.Option(metavar="MODEL.py:BUILD", help="Begin with the PyTorch model that BUILD() returns.")
    ] = None,
    image_size: ImageSize = None,
    folder: Annotated[str | None, typer.Option(metavar="DIR", help="Folder with the paper's named data sets.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Delete the study of this name and start anew.")] = False,
    fork: Annotated[
        str | None, typer.Option(metavar="NEW", help="Fork: start the study NEW from the completed trials of this one.")
    ] = None,
    memory_per_trial: Annotated[
        str | None, typer.Option(metavar="BYTES", help="Memory limit per training: 500M, 2G.")
    ] = None,
    executor: Annotated[str, typer.Option(help="Where networks are trained: local, here or ray.")] = "local",
    address: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Address of the Ray head.")] = None,
    cpus_per_trial: Annotated[
        float, typer.Option(metavar="N", help="CPUs reserved per training on the Ray cluster.")
    ] = 1,
    gpus_per_trial: Annotated[
        float, typer.Option(metavar="N", help="GPUs reserved per training on the Ray cluster.")
    ] = 0,
    device: Annotated[
        str, typer.Option(metavar="NAME", help="Device to train on: auto, cpu, cuda, cuda:1 or mps; a GPU per worker.")
    ] = "auto",
    max_parameters: Annotated[
        int | None, typer.Option(metavar="N", help="Limit on the parameters of the recommended model.")
    ] = None,
    max_layers: Annotated[int | None, typer.Option(metavar="N", help="Limit on a network's hidden layers.")] = None,
    max_size: Annotated[str | None, typer.Option(metavar="BYTES", help="Limit on the model file: 500kB, 5MB.")] = None,
    max_latency: Annotated[
        str | None, typer.Option(metavar="TIME", help="Limit on the model's time for one row, here: 2ms, 300us.")
    ] = None,
    max_failures: Annotated[
        int, typer.Option(metavar="N", help="Stop after this many failures in a row; 0: never.")
    ] = 3,
    stop_when_settled: Annotated[
        bool,
        typer.Option("--stop-when-settled", help="End the search when more trials promise less than the noise."),
    ] = False,
    shared: Annotated[
        bool, typer.Option("--shared", help="Let others that say so work on the study at the same time.")
    ] = False,
    serve: Annotated[bool, typer.Option("--serve", help="Show the search as a live page while it runs.")] = False,
    as_json: Json = False,
) -> None:
    """Search for the network that learns your data best.

    The study is kept, so the same command goes on where it was left, with a larger budget for longer. Ctrl-C is safe.
    """
    from nasbot.architecture.own_vocabulary import use_vocabulary
    from nasbot.data.metrics import metric_for
    from nasbot.data.weighting import parsed_class_weight
    from nasbot.otmann.solver import compile_in_background
    from nasbot.study.budget import Budget

    shares = parsed_split(split)
    Budget.of(budget)  # before the data are read
    memory = _checked_place(executor, memory_per_trial, address, cpus_per_trial, gpus_per_trial)
    if searcher == "nasbot":
        compile_in_background()  # while the data are read; the search waits for it before its clock starts
    options: dict[str, Any] = {"task": task, "seed": seed, "split": shares, "drop": tuple(drop or ())}
    options |= {"groups": group, "time": time, "valid": valid, "test": test, "sample_weight": weight}
    options |= {"image_size": image_size, "kinds": parsed_kinds(kinds) or None}
    options |= {"drop_unlabelled": True} if drop_unlabelled else {}
    options |= {"class_weight": None if class_weight is None else parsed_class_weight(class_weight)}
    goal = None if not target else target[0] if len(target) == 1 else tuple(target)
    prepared = data_named(data, goal, folder, {key: value for key, value in options.items() if value is not None})
    if metric is not None:
        metric_for(metric, prepared)
    found, begun = searched(
        prepared,
        serves=serve,
        budget=budget,
        metric=metric,
        workers=workers,
        seed=seed,
        **({"name": name} if name else {}),
        recipe=recipe,
        searcher=searcher,
        space=None if vocabulary is None else use_vocabulary(vocabulary),
        tune=tune,
        attributes=attributes,
        fidelity=fidelity,
        pacer=pacer,
        pool=pool,
        folds=int(folds) if folds.isdecimal() else folds,
        refit=refit,
        yardstick=yardstick,
        start_from=() if start_from is None else (traced(start_from, prepared),),
        seconds_per_trial=seconds_per_trial,
        executor=executor,
        memory_per_trial=memory,
        address=address,
        cpus_per_trial=cpus_per_trial,
        gpus_per_trial=gpus_per_trial,
        device=device,
        max_failures=max_failures or None,
        stop_when_settled=stop_when_settled,
        fork=fork,
        shared=shared,
        fresh=fresh,
        max_parameters=max_parameters,
        max_layers=max_layers,
        max_size=max_size,
        max_latency=max_latency,
    )
    shown = kept_best(found, begun)
    if as_json:
        print_json(shown)
    else:
        print_result(found, begun, shown)
    if found.best is None:
        asked = Budget.of(budget)  # the plan's is what getting ready has left of it
        raise StudyError(
            f"no network was trained in {asked}: there is no model yet; the same command with more goes on"
        )


# -- parts that the demo shares ----------------------------------------------------------------------------------------


def searched(data: Dataset, *, serves: bool = False, **options: Any) -> tuple[FoundStudy, Prepared]:
    """Run ``nasbot.search``, showing what happens; where it is interrupted, say how to go on."""
    from nasbot.automl import search
    from nasbot.cli._progress import progress
    from nasbot.data.metrics import default_metric
    from nasbot.execution.interruption import Interrupted, leaving_on_signals
    from nasbot.storage import is_begun
    from nasbot.study import StudyView
    from nasbot.study.interrupted_message import interrupted_message

    begun: list[Prepared] = []
    tell: list[Callable[[Trial], None]] = []
    with ExitStack() as stack, leaving_on_signals(second_kills=True):

        def start(prepared: Prepared) -> None:
            begun.append(prepared)
            _announce(prepared)
            if serves:
                stack.enter_context(_page(prepared))
            metric = prepared.metric or default_metric(data)
            if prepared.metric is None and not data.is_classification:  # the loss, a constant has 1; the end has units
                metric = replace(metric, name=f"standardised {metric.name}")
            plan, trials = prepared.plan, list(prepared.history)
            whole = plan.end if plan.budget.seconds is None else plan.budget
            shown = progress(whole, elapsed=prepared.elapsed, trials=trials, metric=metric, plan=str(plan))
            tell.append(stack.enter_context(shown))

        try:
            found = search(data, on_start=start, on_change=lambda trial: tell[0](trial), progress=False, **options)
        except Interrupted as stop:
            if begun and begun[0].path is not None and is_begun(begun[0].path):
                stack.close()
                with StudyView.read(begun[0].path) as view:
                    print(interrupted_message(view, stop, resume=_command_line()), file=sys.stderr)
            raise
    return found, begun[0]


def kept_best(study: FoundStudy, planned: Prepared) -> dict[str, Any]:
    """Write the best network and its drawing beside the study; what ``--json`` prints."""
    from nasbot.automl.removing import BEST_DRAWING, BEST_NETWORK
    from nasbot.automl.summary import record_of
    from nasbot.automl.understanding import save_understanding

    record: dict[str, Any] = {
        **record_of(study),
        "study": None if planned.path is None else planned.path.stem,
        "file": None if planned.path is None else str(planned.path),
        "files": str(study.files),
    }
    if (best := study.best) is not None:
        save_understanding(study)
        best.arch.save(study.files / BEST_NETWORK)
        best.draw(study.files / BEST_DRAWING, title=f"{planned.data.name}: trial {best.number}")
        record |= {"network": str(study.files / BEST_NETWORK), "drawing": str(study.files / BEST_DRAWING)}
    return record


def print_result(study: FoundStudy, planned: Prepared, record: dict[str, Any]) -> None:
    """What came of it, where it is, and what to type next."""
    from nasbot.architecture.own_vocabulary import paths_in_use
    from nasbot.study.runs import with_longer_budget

    print(one_line_each(study.summary()))
    if "drawing" in record:
        print(f"drawing: {one_line(record['drawing'])}    network: {one_line(record['network'])}")
    where = one_line(shlex.quote(study_argument(planned)))
    print(f"study: {one_line(str(planned.path))}")
    own = "".join(f" --vocabulary {path}" for path in paths_in_use())
    is_table = not planned.data.has_images
    new = ("FILE", "new rows: a table with the same columns") if is_table else ("FOLDER", "a folder of pictures")
    suggestions = [
        (f"predict {where} {new[0]}", f"what the model says of {new[1]}"),
        (f"export {where} --to code", "the model as one Python file that needs only torch; or onnx, safetensors"),
        (f"report {where}", "everything on one page"),
        (f"serve {where}", "the same page, live"),
        (f"what-if {where}", "what the search expects of every change of the best network"),
    ]
    program = program_name()
    print("Next, try:")
    print(f"  {with_longer_budget(_command_line(), planned.plan.budget)}    # the same with a longer --budget goes on")
    if study.best is None:  # there is nothing yet that the others could show
        return
    for arguments, meaning in suggestions:
        print(f"  {program} {arguments}{own}    # {meaning}")


def data_named(data: str, target: str | tuple[str, ...] | None, folder: str | None, options: dict[str, Any]) -> Dataset:
    """The data set that the text means: a file or folder if there is one, else a name."""
    from nasbot.data.dataset import named_dataset, read_dataset
    from nasbot.data.named import NAMES

    path = Path(data)
    if "\0" in data or not data:
        raise FileError(f"cannot read the data {data!r}")
    with file_errors(f"{path}: cannot be read"):  # a name that is too long, a folder that may not be entered
        exists = path.exists()
    if exists:
        return read_dataset(path, target, **options)
    if data in NAMES or (not path.suffix and len(path.parts) == 1):
        if data in NAMES and target is not None:
            raise OptionError(f"--target: the set {data!r} has its own; expected no target")
        if data not in NAMES:
            _no_such_data(data)
        if {"valid", "test", "image_size"} & set(options):
            raise OptionError(
                f"--valid, --test, --image-size: expected with a file of data, got the named set {data!r}"
            )
        return named_dataset(data, folder=folder, **options)
    raise FileError(f"{data}: no such file or folder")


def parsed_split(text: str) -> tuple[float, ...]:
    """Shares from "0.6,0.2,0.2"; what they must be is checked with the data."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise OptionError(f"--split: expected three shares such as 0.6,0.2,0.2, got {text[:60]!r}") from None


def traced(where: str, data: Dataset) -> Architecture:
    """The network of the PyTorch model that a function of a file builds."""
    from nasbot.tracing.own_model import built, traced_model

    return traced_model(built(where), data)


def study_argument(planned: Prepared) -> str:
    """How other commands are told which study: by name where it lies in the studies' folder."""
    from nasbot.study import study_path

    path = planned.path or Path()
    if not isinstance(path, Path):
        return str(path)
    stem = path.name.removesuffix(path.suffix)
    try:
        return stem if study_path(stem) == path else str(path)
    except OptionError:
        return str(path)


def program_name() -> str:
    """What to type for ``nasbot`` here: after ``make demo`` it is in .venv, where the shell does not look."""
    import os
    import shutil

    beside_python = Path(sys.executable).with_name("nasbot")
    if shutil.which("nasbot") or not beside_python.exists():
        return "nasbot"
    return one_line(os.path.relpath(beside_python))


def one_line_each(text: str) -> str:
    """Lines with whatever is not printable in them escaped."""
    return "\n".join(one_line(line) for line in text.splitlines())


# -- inside ------------------------------------------------------------------------------------------------------------


def _announce(planned: Prepared) -> None:
    """What will happen, before anything runs."""
    from nasbot.data.metrics import default_metric, notices

    n = len(planned.searcher.initial_pool())
    lines = [
        *planned.data.summary(),
        *notices(planned.data, planned.metric or default_metric(planned.data)),
        f"plan: {planned.plan}; {n} networks to begin with",
        f"study: {planned.path} ({'goes on' if planned.is_resumed else 'new'})",
    ]
    if planned.is_spent:
        lines.append(f"the budget of {planned.plan.budget} is spent; a larger --budget goes on with the study")
    print(one_line_each("\n".join(lines)), file=sys.stderr, flush=True)


@contextmanager
def _page(planned: Prepared) -> Iterator[None]:
    """The live page, for as long as the search runs."""
    try:
        from nasbot.page.sidecar import served_beside
    except ModuleNotFoundError as missing:
        raise OptionError(f"--serve needs {missing.name}: install nasbot with its extra, nasbot[web]") from None
    if not isinstance(planned.path, Path):
        raise OptionError("--serve: expected a study with a name or a file, which the page can read")
    with served_beside(planned.path) as address:
        print(f"page: {address}", file=sys.stderr, flush=True)
        yield


def _checked_place(kind: str, memory: str | None, address: str | None, cpus: float, gpus: float) -> int | None:
    """The bytes that one training may take, if the options belong together."""
    from nasbot.automl.executors import check_place, parsed_bytes

    bytes_each = None if memory is None else parsed_bytes(memory)
    try:
        check_place(kind, memory_per_trial=bytes_each, address=address, cpus_per_trial=cpus, gpus_per_trial=gpus)
    except OptionError as error:  # as the person has typed it
        raise OptionError(f"--{str(error).replace('_per_trial:', '-per-trial:')}") from None
    return bytes_each


def _no_such_data(data: str) -> None:
    import difflib

    from nasbot.data.named import NAMES

    near = difflib.get_close_matches(data, NAMES, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise FileError(f"{data}: no such file, folder or named set{hint} (sets: {', '.join(NAMES)})")


def _command_line() -> str:
    from nasbot.storage.addresses import without_password

    arguments = map(without_password, sys.argv[1:])
    return " ".join([program_name(), *(one_line(shlex.quote(argument)) for argument in arguments)])
