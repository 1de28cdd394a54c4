from benchmarks.scale import fill
from nasbot.study import StudyView


def test_a_study_is_filled_with_as_many_different_networks(tmp_path):
    fill(tmp_path / "scale.db", 40)
    with StudyView.read(tmp_path / "scale.db") as study:
        assert len(study.history.completed) == len(study.history.seen) == 40
