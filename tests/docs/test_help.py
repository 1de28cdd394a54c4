"""``help()`` of the entry points: every argument, what comes back, what is raised."""

import dataclasses
import inspect
import re

import pytest

import nasbot
from nasbot.study.optimise import SearchOptions
from nasbot.study.study import StudyOptions


def arguments(entry):
    if entry is nasbot.NASBOT:
        return {field.name for field in dataclasses.fields(entry) if field.init}
    names = set(inspect.signature(entry).parameters)
    more = {nasbot.maximise: SearchOptions, nasbot.Study.open: StudyOptions}.get(entry)
    return names - {"self", "options"} | set(more.__annotations__ if more else ())


@pytest.mark.parametrize(
    "entry",
    [nasbot.search, nasbot.maximise, nasbot.Study.open, nasbot.Study.optimise, nasbot.NASBOT, nasbot.train],
    ids=lambda entry: entry.__qualname__,
)
def test_help_says_everything(entry):
    text = inspect.getdoc(entry)
    args, _, rest = text.partition("Args:\n")[2].partition("\n\n")
    assert set(re.findall(r"^    \**(\w+): ", args, flags=re.MULTILINE)) == arguments(entry)
    assert "Raises:\n" in rest
    assert "Returns:\n" in rest or inspect.isclass(entry)


def test_every_public_name_is_there_and_documented():
    for name in nasbot.__all__:
        assert name == "__version__" or inspect.getdoc(getattr(nasbot, name)), name
