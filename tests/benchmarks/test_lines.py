"""The count of lines: every module in one place, and sums that add up."""

import subprocess
from collections import Counter

import pytest

from benchmarks import lines


def test_every_module_that_is_counted_apart_is_there_once():
    listed = Counter(path for paths in lines.LATER.values() for path in paths)
    assert set(listed) <= set(lines.lines_at(None))
    assert [path for path, n in listed.items() if n > 1] == []


def test_every_room_stands_in_the_table_once():
    named = Counter(room for rooms in lines.ROOMS for room in rooms)
    assert set(named) == set(lines.by_room(lines.lines_at(None)))
    assert max(named.values()) == 1


def test_sums_add_up():
    now = lines.lines_at(None)
    then = {"report/a.py": 7, "web/b.py": 5, "trial.py": 3}
    rows = [line.strip("| ").split(" | ") for line in lines.tables(then, now) if line.startswith("| ")]
    rooms = {
        row[0]: [int(cell.replace(",", "")) for cell in row[1:]] for row in rows if len(row) == 5 and row[1] != "before"
    }
    total = rooms.pop("**all**")
    assert total[:2] == [15, sum(now.values())]
    assert [sum(column) for column in zip(*rooms.values(), strict=True)] == total
    assert rooms["callbacks, drawing, page, plots"][0] == 12
    assert all(n_now == n_later + rest for _, n_now, n_later, rest in rooms.values())
    assert sum(int(row[2].replace(",", "")) for row in rows if len(row) == 3 and row[1] != "modules") == total[2]


def test_lines_are_those_of_a_commit(tmp_path, monkeypatch):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(tmp_path)]
    (tmp_path / "src/nasbot/gp").mkdir(parents=True)
    (tmp_path / "src/nasbot/gp/belief.py").write_text("a = 1\n\nb = 2\n")
    (tmp_path / "src/nasbot/page.js").write_text("let a;\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "Begin"]):
        subprocess.run([*git, *command], check=True)
    (tmp_path / "src/nasbot/gp/belief.py").write_text("a = 1\n")
    monkeypatch.setattr(lines, "REPOSITORY", tmp_path)
    assert lines.lines_at("HEAD") == {"gp/belief.py": 3}
    assert lines.lines_at(None) == {"gp/belief.py": 1}
    with pytest.raises(subprocess.CalledProcessError):
        lines.lines_at("nowhere")
