"""--vocabulary MODULE:NAME: every command reads a study of one's own networks with it, and none imports without it."""

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from sklearn.datasets import load_iris

import nasbot
from nasbot.architecture import own_vocabulary, vocabularies
from nasbot.cli import main
from tests.page.conftest import ROOT, serving

WHERE = "tests.cli.own_cells:CELLS"
POOL = "tests.cli.own_cells:POOL"
NAMED = ("--vocabulary", WHERE)
READING = {
    "show": ("show", "it"),
    "show one": ("show", "it", "0"),
    "explain": ("explain", "it", "2"),
    "what-if": ("what-if", "it"),
    "plot": ("plot", "it", "map", "--out", "{out}/map.svg"),
    "report": ("report", "it", "--out", "{out}/it.html"),
    "export": ("export", "it", "--to", "json", "--out", "{out}/it.json"),
    "model": ("export", "it", "--to", "safetensors", "--out", "{out}/it.safetensors"),
    "predict": ("predict", "it", "iris.csv"),
    "repair": ("repair", "it", "--out", "{out}/copy.sqlite"),
}


@pytest.fixture(autouse=True)
def _nothing_named(monkeypatch):
    """Every test begins as a new process does: no vocabulary in use."""
    monkeypatch.setattr(own_vocabulary, "_PATHS", {})
    kept = dict(vocabularies.OWN)
    vocabularies.OWN.clear()
    yield
    vocabularies.OWN.clear()
    vocabularies.OWN.update(kept)


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A folder with a study of networks of one's own, made by the command."""
    folder = tmp_path_factory.mktemp("own")
    load_iris(as_frame=True).frame.assign(target=lambda x: "c" + x.target.astype(str)).to_csv(
        folder / "iris.csv", index=False
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        options = ("--target", "target", "--name", "it", "--budget", "4 trials", "--executor", "here", "--folds", "1")
        assert main(["run", "iris.csv", *options, "--seconds-per-trial", "1", *NAMED, "--pool", POOL]) == 0
        vocabularies.OWN.clear()
    return folder


@pytest.fixture
def inside(begun, monkeypatch):
    monkeypatch.chdir(begun)
    return begun


@pytest.mark.parametrize("command", READING.values(), ids=READING)
def test_a_command_reads_the_study_with_it_and_says_how_without(inside, command, tmp_path, capsys):
    arguments = [word.format(out=tmp_path) for word in command]
    assert main(arguments) == nasbot.VocabularyError.exit_code
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "--vocabulary" in said
    assert WHERE in said or command[0] == "repair"  # which reads a file that may be damaged, settings and all
    assert main([*arguments, *NAMED]) == 0


def test_commands_that_read_no_network_need_no_vocabulary(inside):
    assert main(["status", "it"]) == main(["list"]) == main(["check", "it"]) == 0


def asked(url):
    """What the page's server says to a browser; the text of its error where it cannot."""
    try:
        with urllib.request.urlopen(url, timeout=120) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()


def test_the_page_shows_the_networks_with_it_and_says_how_without(inside):
    with serving("it", *NAMED) as served:
        assert asked(served.url + "s/it/drawing/0.svg").startswith("<svg")
        assert "gated" in asked(served.url + "s/it/api/trial/0")
        assert '"nodes"' in asked(served.url + "s/it/api/series/lineage")
    with serving("it") as served:
        said = asked(served.url + "s/it/api/tick") + asked(served.url + "s/it/drawing/0.svg")
        assert "with --vocabulary MODULE:NAME" in said
        assert not said.startswith("<svg")


def test_a_search_serves_networks_of_it_while_it_runs(inside, tmp_path):
    options = ("--target", "target", "--name", str(tmp_path / "live.sqlite"), "--budget", "200 trials", "--folds", "1")
    command = ["run", str(inside / "iris.csv"), *options, "--seconds-per-trial", "1", "--serve"]
    process = subprocess.Popen(
        [sys.executable, "-m", "nasbot", *command, "--workers", "1", *NAMED, "--pool", POOL],
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "OMP_NUM_THREADS": "1"},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    try:
        lines = iter(process.stderr.readline, "")
        page = next(line for line in lines if line.startswith("page: ")).split()[1]
        assert any(line.startswith("trial   0  log-loss") for line in lines)  # then its network is in the file
        assert asked(page + "s/live/drawing/0.svg").startswith("<svg")
        assert "gated" in asked(page + "s/live/api/trial/0")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)


def test_network_files_and_model_files_are_read_with_it(inside, tmp_path, capsys):
    main(["export", "it", "--to", "json", "--out", str(tmp_path / "a"), *NAMED])
    main(["export", "it", "--to", "safetensors", "--out", str(tmp_path / "a"), *NAMED])
    net, model = str(tmp_path / "a.json"), str(tmp_path / "a.safetensors")
    vocabularies.OWN.clear()
    for command in (
        ["check", net],
        ["draw", net, str(tmp_path / "a.svg")],
        ["distance", net, net],
        ["predict", model, "iris.csv"],
    ):
        assert main(command) != 0
        assert main([*command, *NAMED]) == 0
        vocabularies.OWN.clear()


def test_opening_a_study_never_imports_what_it_names(inside):
    """In a process of its own, where nothing has imported the module before."""
    reading = "from nasbot import StudyView\nview = StudyView.read('it')\nprint(view.settings['vocabulary'])\n"
    trying = "try:\n    view.history\nexcept Exception as error:\n    print(type(error).__name__)\n"
    done = subprocess.run(
        [sys.executable, "-c", f"{reading}{trying}import sys\nprint('tests.cli.own_cells' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [WHERE, "VocabularyError", "False"]


def test_another_vocabulary_of_the_same_name_is_not_taken_for_it(inside, capsys):
    assert main(["explain", "it", "2", "--vocabulary", "tests.cli.own_cells:OTHERS"]) == nasbot.StudyError.exit_code
    assert "what is stored does not describe one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("tests.cli.own_cells", "expected MODULE:NAME"),
        ("tests.cli.own_cells:NONE", "has nothing of that name"),
        ("tests.cli.own_cells:POOL", "has a list there"),
        ("tests.cli.no_such:CELLS", "no module"),
        ("no_such.py:CELLS", "no such file"),
    ],
)
def test_what_is_no_vocabulary_is_said_in_one_line(inside, where, said, capsys):
    assert main(["show", "it", "--vocabulary", where]) in (nasbot.OptionError.exit_code, nasbot.FileError.exit_code)
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_a_vocabulary_where_its_import_path_is_asked_for_is_said():
    with pytest.raises(nasbot.OptionError, match=r"expected MODULE:NAME .*, got Vocabulary; an object is passed"):
        nasbot.use_vocabulary(nasbot.SearchSpace("cnn").vocabulary)


def test_run_refuses_before_a_trial_what_cannot_be_searched(inside, capsys):
    def refusal(*options):
        assert main(["run", "iris.csv", "--name", "new", *options]) == nasbot.OptionError.exit_code
        return capsys.readouterr().err

    assert "expected a list of some" in refusal("--target", "target", *NAMED)
    assert "the data ask for regression" in refusal("--target", "petal width (cm)", *NAMED, "--pool", POOL)
    assert "expected MODULE:NAME" in refusal("--target", "target", *NAMED, "--pool", "tests.cli.own_cells:NAMES")
    assert not (inside / "studies" / "new.sqlite").exists()


def test_the_study_goes_on_wherever_the_vocabulary_is_imported_from(inside, tmp_path, capsys):
    """What it says may not change, where it stands may: the path is for people."""
    moved = tmp_path / "moved.py"
    moved.write_text("from tests.cli.own_cells import CELLS\n")
    options = ("--target", "target", "--name", "it", "--executor", "here", "--folds", "1", "--seconds-per-trial", "1")
    assert (
        main(["run", "iris.csv", *options, "--budget", "4 trials", "--vocabulary", f"{moved}:CELLS", "--pool", POOL])
        == 0
    )


def test_a_vocabulary_passed_in_python_is_remembered_by_the_module_that_holds_it(tmp_path):
    from tests.cli.own_cells import CELLS
    from tests.cli.own_cells import POOL as networks

    space = nasbot.SearchSpace(CELLS)
    searcher = nasbot.RandomSearch(space=space, pool=networks)
    nasbot.maximise(lambda arch: 1.0, space, searcher=searcher, name=tmp_path / "a.sqlite", trials=2).close()
    nasbot.use_vocabulary(WHERE)
    with nasbot.StudyView.read(tmp_path / "a.sqlite") as view:
        assert view.settings["vocabulary"] == WHERE
        assert len(view.history) == 2
