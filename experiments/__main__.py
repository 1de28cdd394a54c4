"""Run experiments and write their pages.

    python -m experiments all [--quick]           everything that is not recorded yet, then every page and the summary
    python -m experiments regression map …        some of them
    python -m experiments all --pages             run nothing; draw pages and figures from the records
    python -m experiments list                    what there is, what is recorded, how long the rest may take

Stop it when you like: what is recorded is never run again, and a search that was under way goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from experiments.catalogue import EXPERIMENTS
from experiments.experiment import Experiment, Results, results_of
from experiments.markdown import hosted, page
from experiments.protocol import Protocol, read_protocol
from experiments.records import Places, default_places, missing_runs, run_missing
from experiments.summary import summary_page
from nasbot.errors import NasbotError, OptionError


class _Parser(argparse.ArgumentParser):
    """Mistakes are one line."""

    def error(self, message: str) -> NoReturn:
        raise OptionError(message)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(prog="python -m experiments", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("experiments", nargs="*", default=["all"], help=f"all, list, or of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--quick", action="store_true", help="a smoke version of each, in minutes; it shows nothing")
    parser.add_argument("--pages", action="store_true", help="run nothing, write the pages from the records")
    parser.add_argument("--seeds", metavar="N", type=int, help="the seeds 0 to N - 1 instead of the protocol's")
    parser.add_argument("--datasets", metavar="A,B", type=_names, help="these instead of the protocol's, as blog,news")
    parser.add_argument("--methods", metavar="A,B", type=_names, help="these instead of the protocol's")
    parser.add_argument("--processes", metavar="P", type=int, default=2, help="runs at a time, of those on one core")
    parser.add_argument("--out", metavar="FOLDER", type=Path, help="for pages, figures and records")
    parser.add_argument("--work", metavar="FOLDER", type=Path, help="for prepared data and studies under way")
    parser.add_argument("--data", metavar="FOLDER", type=Path, help="the paper's data (or NASBOT_DATA says where)")
    return _checked(parser.parse_args(arguments))


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(","))


def _checked(options: argparse.Namespace) -> argparse.Namespace:
    known = ("all", "list", *EXPERIMENTS)
    if unknown := [name for name in options.experiments if name not in known]:
        raise OptionError(f"experiments: expected some of {', '.join(known)}; got {unknown[0]!r}")
    for name in ("seeds", "processes"):
        if (value := getattr(options, name)) is not None and value < 1:
            raise OptionError(f"--{name}: expected a whole number >= 1, got {value}")
    return options


def _places(options: argparse.Namespace) -> Places:
    places = default_places(quick=options.quick)
    given = {name: getattr(options, name).resolve() for name in ("out", "work", "data") if getattr(options, name)}
    return replace(places, **given)


def protocol_of(experiment: Experiment, options: argparse.Namespace) -> Protocol:
    """Its protocol, with the seeds, data sets and methods asked for."""
    protocol = read_protocol(experiment.name, quick=options.quick)
    asked = {"seed": options.seeds and range(options.seeds), "dataset": options.datasets, "method": options.methods}
    given = {axis: list(values) for axis, values in asked.items() if values and axis in protocol.axes}
    return replace(protocol, axes={**protocol.axes, **given})


def say(text: str) -> None:
    """One line of progress."""
    print(text, flush=True)


def run(experiment: Experiment, options: argparse.Namespace, places: Places) -> None:
    """Do what is missing."""
    if experiment.do is None:
        return
    protocol = protocol_of(experiment, options)
    if experiment.prepare is not None and missing_runs(protocol, places):
        experiment.prepare(protocol, places)
    processes = options.processes if experiment.single else 1
    run_missing(protocol, experiment.do, places, processes=processes, say=say)


def write(experiment: Experiment, options: argparse.Namespace, places: Places) -> None:
    """The page of an experiment, drawn from all its records, whichever runs were asked for now."""
    results = _results(experiment, options, places)
    is_run = bool(results.records if experiment.do is not None else results.everything)
    text = page(experiment, results, experiment.write(results, places) if is_run else None, quick=options.quick)
    path = places.out / experiment.page
    path.parent.mkdir(parents=True, exist_ok=True)
    host = path.read_text(encoding="utf-8") if experiment.hosted_by and path.exists() else ""
    path.write_text(hosted(host, experiment.name, text), encoding="utf-8")
    say(f"{experiment.name}: {path} from {len(results.everything)} records")


def _results(experiment: Experiment, options: argparse.Namespace, places: Places) -> Results:
    """All records under the settings of the protocol, and those of the experiments that it reads."""
    results = results_of(read_protocol(experiment.name, quick=options.quick), places)
    return replace(results, used={name: _results(EXPERIMENTS[name], options, places) for name in experiment.uses})


def listing(options: argparse.Namespace, places: Places) -> None:
    """What there is and what is recorded of it."""
    for experiment in EXPERIMENTS.values():
        protocol = protocol_of(experiment, options)
        planned = len(protocol.runs())
        of = f"{planned - len(missing_runs(protocol, places)):>4} of {planned:>4} runs"
        of = of if experiment.do is not None else "drawn from others"
        say(f"{experiment.name:<18} {of:<18} about {protocol.minutes:>4.0f} minutes in all  {experiment.title}")


def _each(chosen: Iterable[Experiment], options: argparse.Namespace, places: Places) -> NasbotError | None:
    """Run and write each; one whose data are missing does not keep the others from it. The first error there was."""
    first = None
    for experiment in chosen:
        try:
            if not options.pages:
                run(experiment, options, places)
        except NasbotError as error:
            print(f"error: {experiment.name}: {error}", file=sys.stderr)
            first = first or error
        write(experiment, options, places)
    return first


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, write; the exit code is that of the error if there is one (2 for an option, 3 for a file)."""
    try:
        options = _options(arguments)
        places = _places(options)
        if "list" in options.experiments:
            listing(options, places)
            return 0
        chosen = EXPERIMENTS if "all" in options.experiments else {n: EXPERIMENTS[n] for n in options.experiments}
        failed = _each(chosen.values(), options, places)
        summary = places.out / "summary.md"
        everything = {name: _results(experiment, options, places) for name, experiment in EXPERIMENTS.items()}
        summary.write_text(summary_page(everything, quick=options.quick), encoding="utf-8")
        say(f"summary: {summary}")
        if failed is not None:
            return failed.exit_code
    except NasbotError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
