"""What a notebook shows of a study, a trial, a history and a table of distances: HTML that needs nothing else.

All text is escaped: names, messages and labels come from anywhere. Colours are translucent or inherited, so that light
and dark notebooks both read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nasbot._words import first_line
from nasbot.drawing.draw import to_svg
from nasbot.plots import series
from nasbot.plots.meaning import meaning_of
from nasbot.plots.snapshot import Snapshot, Source, parent_of
from nasbot.plots.style import BEST, SKY, clock, reaching_limits, short
from nasbot.trial import Scored, Trial

if TYPE_CHECKING:
    from nasbot.otmann import Distances

N_SHOWN = 8  # trials of a history
MAX_SIDE = 24  # networks of a table of distances
SPARK_WIDTH, SPARK_HEIGHT = 260, 60
CELL = "padding:2px 10px 2px 0;text-align:left;border:none;vertical-align:top"


def study_html(source: Source) -> str:
    """State, best value, the way to it, the best network and the best trials."""
    snapshot = Snapshot.of(source)
    history = snapshot.history
    best = history.best
    counts = Counter(str(trial.state) for trial in history)
    facts = [
        ("study", f"{snapshot.searcher or 'history'}, to be {snapshot.direction}d"),
        ("trials", ", ".join(f"{n} {state}" for state, n in counts.items()) or "none yet"),
        ("time", clock(snapshot.elapsed)),
    ]
    if best is not None and best.value is not None:
        facts.insert(1, (f"best {meaning_of(snapshot.settings)}", f"{short(best.value, 6)} (trial {best.number})"))
    causes = series.failures(snapshot).rows
    if causes:
        facts.append(("failures", ", ".join(f"{row.n} {row.cause}" for row in causes)))
    parts = [_table(facts), _spark(series.history(snapshot))]
    if best is not None:
        parts += [_folded("the best network", to_svg(best.arch)), _folded("the best trials", _best_trials(snapshot))]
    return _framed(parts)


def trial_html(trial: Trial) -> str:
    """Where a network came from, what became of it, its curve and its drawing."""
    facts = [("trial", f"{trial.number}, {trial.state}")]
    if trial.value is not None:
        facts.append(("value", short(trial.value, 6)))
    said = first_line(trial.message, 200)
    if trial.cause is not None:
        facts.append(("failed", f"{trial.cause}: {said}" if said else str(trial.cause)))
    elif said:
        facts.append((str(trial.state), said))
    if trial.seconds is not None:
        facts.append(("time", clock(trial.seconds)))
    parent = parent_of(trial, trial.number)
    changes = "; ".join(trial.origin.changes) or ", ".join(trial.origin.modifiers)
    origin = "" if parent is None else f"from trial {parent}" + (f" by {changes}" if changes else "")
    facts.append(("made", origin or trial.origin.searcher or "by hand"))
    facts += [
        (name, short(value) if isinstance(value, float) else str(value))
        for name, value in trial.candidate.params.items()
    ]
    foreseen = trial.forecast
    if foreseen is not None and foreseen.median is not None:
        median, lower, upper = (short(end or 0.0) for end in (foreseen.median, foreseen.lower, foreseen.upper))
        facts.append(("predicted", f"{median}, 90 % between {lower} and {upper}"))
    if isinstance(trial.outcome, Scored):
        plain = {key: value for key, value in trial.outcome.details.items() if isinstance(value, str | int | float)}
        facts += [
            (key[:40], short(value) if isinstance(value, float) else str(value)[:80]) for key, value in plain.items()
        ]
    parts = [_table(facts)]
    if len(trial.curve) > 1:
        points = [(float(point.step), point.value) for point in trial.curve]
        parts.append(_polyline(points, "the learning curve"))
    return _framed([*parts, to_svg(trial.arch)])


def distances_html(distances: Distances) -> str:
    """d_bar as a table, the darker the farther, at the middle one of the structural weights."""
    if distances.d.ndim == 1:
        rows = [("ν", "d", "d_bar")]
        numbers = zip(distances.structural_weights, distances.d, distances.d_bar, strict=True)
        rows += [(f"{nu:g}", f"{d:,.6g}", f"{d_bar:.4f}") for nu, d, d_bar in numbers]
        return _framed([_table(rows)])
    middle = distances.d_bar.shape[0] // 2
    weight = distances.structural_weights[middle]
    n, m = distances.d_bar.shape[1:]
    caption = f"d_bar of {n} × {m} networks at structural weight {weight:g}"
    if max(n, m) > MAX_SIDE:
        caption += f"; the first {min(n, MAX_SIDE)} × {min(m, MAX_SIDE)} are shown"
    shown = distances.d_bar[middle, :MAX_SIDE, :MAX_SIDE]
    return _framed([f"<div style='opacity:.7'>{escape(caption)}</div>", _heat(shown)])


# -- pieces ------------------------------------------------------------------------------------------------------------


def _framed(parts: Iterable[str]) -> str:
    inner = "".join(f"<div style='margin:4px 0'>{part}</div>" for part in parts if part)
    return f"<div style='font-family:sans-serif;font-size:13px;line-height:1.4;overflow-x:auto'>{inner}</div>"


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = ""
    for row in rows:
        first, *others = (escape(cell) for cell in row)
        cells = "".join(f"<td style='{CELL}'>{cell}</td>" for cell in others)
        lines += f"<tr style='background:none'><td style='{CELL};opacity:.7'>{first}</td>{cells}</tr>"
    return f"<table style='border-collapse:collapse;border:none'>{lines}</table>"


def _folded(title: str, content: str) -> str:
    return f"<details><summary style='cursor:pointer'>{escape(title)}</summary>{content}</details>"


def _best_trials(snapshot: Snapshot) -> str:
    rows: list[Sequence[str]] = [("trial", str(meaning_of(snapshot.settings)), "layers", "time", "made by")]
    for trial in snapshot.history.ranked[:N_SHOWN]:
        made = ", ".join(trial.origin.modifiers) or trial.origin.searcher
        seconds = "" if trial.seconds is None else clock(trial.seconds)
        rows.append(
            (
                str(trial.number),
                short(trial.value or 0.0, 6),
                str(len(trial.arch.processing_layers)),
                seconds,
                made,
            )
        )
    return _table(rows)


def _spark(found: series.HistorySeries) -> str:
    """The best so far, small."""
    points = [(float(point.place), point.best) for point in found.points if point.best is not None]
    if len(points) < 2:
        return ""
    steps: list[tuple[float, float]] = []
    for (x, best), (after, _) in zip(points, [*points[1:], points[-1]], strict=True):
        steps += [(x, best or 0.0), (after, best or 0.0)]
    values = [(float(point.place), point.value) for point in found.points if point.value is not None]
    return _polyline(
        steps,
        "best value by finished trials",
        values,
        found.direction == "maximise",
    )


def _polyline(
    points: Sequence[tuple[float, float]],
    label: str,
    dots: Sequence[tuple[float, float]] = (),
    up: bool = True,
) -> str:
    low, high, _ = reaching_limits([y for _, y in (*points, *dots)], higher_is_better=up)
    first, last = points[0][0], max(points[-1][0], points[0][0] + 1e-9)

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - first) / (last - first) * (SPARK_WIDTH - 12) + 6
        down = (high - min(max(y, low), high)) / (high - low) * (SPARK_HEIGHT - 8) + 4
        return round(across, 1), round(down, 1)

    path = " ".join(f"{x},{y}" for x, y in (place(*point) for point in points))
    marks = "".join(f"<circle cx='{x}' cy='{y}' r='1.6' fill='{SKY}'/>" for x, y in (place(*dot) for dot in dots))
    return (
        f"<svg width='{SPARK_WIDTH}' height='{SPARK_HEIGHT}' role='img' aria-label='{escape(label)}'>{marks}"
        f"<polyline points='{path}' fill='none' stroke='{BEST}' stroke-width='1.8'/></svg>"
        f"<div style='opacity:.7;font-size:11px'>{escape(label)}: {short(points[0][1])} to {short(points[-1][1])}</div>"
    )


def _heat(values: NDArray[np.float64]) -> str:
    cell = "padding:2px 6px"
    quiet = f"{cell};opacity:.7;font-weight:normal"
    head = "".join(f"<th style='{quiet}'>{j}</th>" for j in range(values.shape[1]))
    lines = f"<tr style='background:none'><th></th>{head}</tr>"
    for i, row in enumerate(values.tolist()):
        cells = "".join(f"<td style='{cell};background:{_shade(value)}'>{value:.2f}</td>" for value in row)
        lines += f"<tr style='background:none'><th style='{quiet}'>{i}</th>{cells}</tr>"
    return f"<table style='border-collapse:collapse;font-variant-numeric:tabular-nums'>{lines}</table>"


def _shade(value: float) -> str:
    return f"rgba(0,114,178,{0.75 * min(max(value, 0.0), 1.0):.2f})"
