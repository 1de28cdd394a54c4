"""Which rows are for training, which choose between networks, which judge the chosen one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nasbot._rng import Role, stream
from nasbot.errors import DataError, OptionError

MIN_ROWS = 10  # fewer leave nothing to choose by
Shares = tuple[float, float, float]
Indices = tuple[np.ndarray, np.ndarray, np.ndarray]


def checked_shares(split: Sequence[float]) -> Shares:
    """The three shares, if they are: none negative, training and validation above 0, in all 1."""
    try:
        shares = tuple(float(share) for share in split)
    except (TypeError, ValueError):
        shares = ()
    train, valid, test = shares if len(shares) == 3 else (math.nan,) * 3
    if not (train > 0 and valid > 0 and test >= 0 and math.isclose(train + valid + test, 1.0, abs_tol=1e-6)):
        raise OptionError(
            f"split: expected three shares that add up to 1, such as (0.6, 0.2, 0.2), the first two above 0, "
            f"got {str(split)[:60]}"
        )
    return train, valid, test


def split_rows(n: int, shares: Shares, *, seed: int, classes: np.ndarray | None = None) -> Indices:
    """Row numbers of the three parts, shuffled by the seed; with ``classes`` each class is divided alike.

    A class with too few rows for all parts is trained on first, then validated on.
    """
    if n < MIN_ROWS:
        raise DataError(f"{n} row{'s' * (n != 1)}: too few to train on and to choose by; expected at least {MIN_ROWS}")
    rng = stream(seed, 0, Role.SPLIT)
    order = rng.permutation(n)
    groups = [order] if classes is None else [order[classes[order] == label] for label in np.unique(classes)]
    parts: tuple[list[np.ndarray], ...] = ([], [], [])
    owed = np.zeros(3)  # by rounding, so that many small classes do not all round the same way
    for rows in groups:
        counts = _counts(len(rows), shares, owed)
        for part, piece in zip(parts, np.split(rows, np.cumsum(counts)[:-1]), strict=True):
            part.append(piece)
    train, valid, test = (rng.permutation(np.concatenate(part)) for part in parts)
    if not len(valid):  # every class has one or two rows: choosing needs some
        moved = max(1, round(shares[1] * n))
        train, valid = train[moved:], train[:moved]
    return train, valid, test


def nested_rows(n: int, share: float, *, classes: np.ndarray | None = None) -> np.ndarray:
    """Row numbers, ascending, of a share of n rows: the first of one fixed permutation of them.

    A larger share thus holds a smaller one. With ``classes`` each class gives its share, and at least one row.
    """
    order = stream(n, 0, Role.SPLIT).permutation(n)
    groups = [order] if classes is None else [order[classes[order] == label] for label in np.unique(classes)]
    least = 1 if len(groups) > 1 else 2
    taken = [rows[: max(least, math.ceil(share * len(rows) - 1e-9))] for rows in groups]
    return np.sort(np.concatenate(taken))


def split_groups(groups: np.ndarray, shares: Shares, *, seed: int) -> Indices:
    """Rows of one group stay together: whole groups, shuffled by the seed, go to the part that lacks most rows."""
    labels, place, counts = np.unique(groups.astype(str), return_inverse=True, return_counts=True)
    n_parts = 2 + (shares[2] > 0)
    if len(labels) < n_parts:
        raise DataError(f"groups: {len(labels)} different; expected at least {n_parts}, one for each part of the rows")
    rng = stream(seed, 0, Role.SPLIT)
    order = rng.permutation(len(labels))
    part_of = np.full(len(labels), -1)
    part_of[order[:n_parts]] = range(n_parts)  # each part has a group
    sizes = np.bincount(part_of[order[:n_parts]], weights=counts[order[:n_parts]], minlength=3)
    for group in order[n_parts:]:
        part = int(np.argmax(np.asarray(shares) * len(groups) - sizes))
        part_of[group] = part
        sizes[part] += counts[group]
    train, valid, test = (rng.permutation(np.flatnonzero(part_of[place] == part)) for part in range(3))
    return train, valid, test


def split_time(times: np.ndarray, shares: Shares) -> Indices:
    """The first rows train, later ones validate, the last test; rows of one moment stay together."""
    order = np.argsort(times, kind="stable")
    ordered = times[order]
    ends = [
        int(np.searchsorted(ordered, ordered[min(len(times), max(1, round(share * len(times)))) - 1], side="right"))
        for share in (shares[0], shares[0] + shares[1])
    ]
    train, valid, test = np.split(order, ends)
    if shares[2] == 0:
        valid, test = np.concatenate([valid, test]), test[:0]
    if not len(valid) or (shares[2] > 0 and not len(test)):
        raise DataError("time: too many rows have the same time to divide them into earlier and later ones")
    return train, valid, test


def checked_indices(indices: Sequence[np.ndarray], n: int) -> Indices:
    """Parts that somebody else chose: within range, apart from each other."""
    parts = [np.asarray(part, dtype=np.int64).reshape(-1) for part in indices]
    if len(parts) != 3 or not len(parts[0]) or not len(parts[1]):
        raise OptionError("indices: expected row numbers for training, validation and test; only test may be empty")
    together = np.concatenate(parts)
    if together.min() < 0 or together.max() >= n or len(np.unique(together)) != len(together):
        raise OptionError(f"indices: expected different row numbers between 0 and {n - 1}")
    return parts[0], parts[1], parts[2]


def _counts(n: int, shares: Shares, owed: np.ndarray) -> np.ndarray:
    """n divided by the shares: whole numbers that add up to n, what is rounded away remembered in ``owed``."""
    wanted = n * np.asarray(shares) + owed
    counts: np.ndarray = np.maximum(np.floor(wanted), 0).astype(int)
    while counts.sum() < n:
        counts[int(np.argmax(wanted - counts))] += 1
    while counts.sum() > n:
        counts[int(np.argmax(counts))] -= 1
    if n and counts[0] == 0:  # a class that is never trained on cannot be predicted
        counts[int(np.argmax(counts))] -= 1
        counts[0] += 1
    owed[:] = wanted - counts
    return counts
