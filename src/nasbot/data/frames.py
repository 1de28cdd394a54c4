"""Records of ours as a data frame of pandas, for people who go on from there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def frame_of(records: Sequence[Mapping[str, Any]], *, index: str) -> pd.DataFrame:
    """A row for each record, a column for each key that any of them has; ``index`` names the column of row labels."""
    import pandas as pd

    columns = list(dict.fromkeys(key for record in records for key in record)) or [index]
    return pd.DataFrame.from_records([dict(record) for record in records], columns=columns).set_index(index)
