"""Tables, numbers and pages in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.runs import Record, average
from experiments.experiment import Body, Experiment, Results
from experiments.protocol import Protocol
from experiments.records import identity

GENERATED = (
    "<!-- Written by `python -m experiments`, from the records beside it: change those, or the code, not this. -->"
)

MORE = "Protocol and settings, how the records came about, and where they are"
QUICK = "**These are the records of `--quick`: they show that the experiment runs, and nothing else.**"


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
    return "\n".join(lines)


def mean_and_error(values: Sequence[float], digits: int = 4) -> str:
    """Mean ± standard error (n); a dash where there are none."""
    if not values:
        return "–"
    mean, se = average(np.array(values, dtype=np.float64))
    spread = f" ± {float(se):.{digits}f}" if len(values) > 1 else ""
    return f"{float(mean):.{digits}f}{spread} ({len(values)})"


def page(experiment: Experiment, results: Results, body: Body | None, *, quick: bool = False) -> str:
    """An experiment's page. Without records it says that nothing was run, and nothing else of results."""
    protocol, records = results.protocol, results.everything if body is not None else []
    parts = [GENERATED, f"# {experiment.title}", QUICK if quick else "", f"**Question.** {experiment.question}"]
    if body is None:
        parts.append(
            f"**Result.** Not run: there is no record under these settings in `records/{experiment.name}.jsonl`. "
            "Nothing is claimed."
        )
    else:
        missing = _missing(protocol, results.records) if experiment.do is not None else ""
        parts += [f"**What it shows, and what it does not.** {body.shows}", missing, body.result]
    parts += ["**Again.**", _command(experiment, protocol, quick)]
    about = [f"**Protocol.** {experiment.method}", _settings(protocol)]
    if body is not None and protocol.remarks:
        about.append(f"**About these records.** {protocol.remarks}")
    parts += [f"<details><summary>{MORE}</summary>", *about, _provenance(experiment, records), "</details>"]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def hosted(host: str, name: str, text: str) -> str:
    """A page written by hand with this text in its place, the title a level lower; the text alone without a place."""
    begin, end = (f"<!-- {name}: {word} -->\n" for word in ("begin", "end"))
    before, found, rest = host.partition(begin)
    _, ends, after = rest.partition(end)
    lowered = text.replace("\n# ", "\n## ", 1)
    return f"{before}{begin}{lowered}{end}{after}" if found and ends else text


def _settings(protocol: Protocol) -> str:
    rows = [(f"`{name}`", _shown(value)) for name, value in protocol.settings.items()]
    rows += [(f"`{axis}`", ", ".join(map(str, values))) for axis, values in protocol.axes.items()]
    return table(("setting", "value"), rows) if rows else ""


def _missing(protocol: Protocol, records: Sequence[Record]) -> str:
    done, planned = {identity(record["run"]) for record in records}, protocol.runs()
    n = sum(identity(run) in done for run in planned)
    beside = f", and {len(done) - n} more" if len(done) > n else ""
    if n == len(planned):
        return f"All {n} of {n} runs of the protocol are recorded{beside}."
    return f"**{n} of the {len(planned)} runs of the protocol are recorded{beside}**: what follows is of these."


def _command(experiment: Experiment, protocol: Protocol, quick: bool) -> str:
    asked = " --quick" if quick else ""
    estimate = f"    # about {protocol.minutes:.0f} minutes on two cores" if protocol.minutes else ""
    return f"```console\npython -m experiments {experiment.name}{asked}{estimate}\n```"


def _provenance(experiment: Experiment, records: Sequence[Record]) -> str:
    files = [name for name in (experiment.name if experiment.do else None, *experiment.uses) if name]
    links = ", ".join(f"[{name}.jsonl](records/{name}.jsonl)" for name in files)
    lines = [f"Raw numbers: {links}, one line a run." if records else ""]
    for title, key in (("Commit", "revision"), ("Machine", "machine")):
        lines.append(_counted(title, [str(record[key]) for record in records]))
    lines.append(_load([float(record["load"]) for record in records]))
    lines.append(_counted("Versions", [_versions(record["versions"]) for record in records]))
    return "\n".join(line for line in lines if line)


def _load(loads: Sequence[float]) -> str:
    """How busy the machine was; two workers alone make between 2 and 3."""
    return f"Load of the machine when runs ended: {min(loads):.1f} to {max(loads):.1f}." if loads else ""


def _counted(title: str, values: Sequence[str]) -> str:
    counts = Counter(values)
    if len(counts) == 1:
        return f"{title}: {values[0]}."
    return f"{title}: " + "; ".join(f"{value} ({n} runs)" for value, n in counts.items()) + "." if counts else ""


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{package} {number}" for package, number in versions.items())


def _shown(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
