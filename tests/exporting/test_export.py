"""Taking networks away: files that give the network's own outputs, or nothing at all."""

import ast
import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import nasbot
from nasbot import Architecture, Layer
from nasbot.data.dataset import dataset_of
from nasbot.errors import ExportError, FileError, OptionError, StorageError
from nasbot.exporting import export as exporting
from nasbot.exporting.export import READERS, export
from nasbot.exporting.model_file import Model, load_model
from nasbot.testing.networks import random_architecture, with_random_attributes
from nasbot.training.module import build
from tests.tracing.models import narrow

SHAPES = {"mlp-reg": (7,), "mlp-class": (7,), "cnn": (3, 17, 13), "mlp-reg+": (7,), "mlp-class+": (7,)}
SMALL = Architecture("mlp-reg", [Layer("ip"), Layer("tanh", 8), Layer("linear"), Layer("op")], [(0, 1), (1, 2), (2, 3)])


def moved(network, seed):
    """The network with batch normalisation that has seen data: means and variances that are not 0 and 1."""
    rows = torch.from_numpy(np.random.default_rng(seed).standard_normal((8, *network.input_shape)).astype(np.float32))
    network.train()
    with torch.no_grad():
        network(rows)
    return network.eval()


def random_network(kind, seed, *, n_layers=24):
    rng = np.random.default_rng(seed)
    arch = narrow(random_architecture(kind, rng=rng, n_layers=int(rng.integers(4, n_layers))))
    if seed % 2:
        arch = with_random_attributes(arch, rng=rng)
    return moved(build(arch, input_shape=SHAPES[kind], n_outputs=3, seed=seed), seed)


def small(**options):
    return build(SMALL, **{"input_shape": (7,), "n_outputs": 2, "seed": 0, **options}).eval()


def outputs(network, x):
    with torch.no_grad():
        return network(torch.from_numpy(x)).numpy()


# -- agreement ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("to", ["code", "onnx"])
def test_exports_agree_on_random_networks(kind, to, tmp_path):
    """17 networks of each kind in each form: 170 in all. The inputs are others than those of the export's own check."""
    for seed in range(17):
        network = random_network(kind, seed)
        x = np.random.default_rng(100 + seed).standard_normal((5, *SHAPES[kind])).astype(np.float32)
        path, *_ = export(network, tmp_path / f"net{seed}", to=to)
        np.testing.assert_allclose(READERS[path.suffix](path, x), outputs(network, x), atol=1e-5, err_msg=str(seed))


@pytest.mark.slow
@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("to", ["code", "onnx", "safetensors"])
def test_exports_agree_on_a_hundred_deep_networks(kind, to, tmp_path):
    for seed in range(1000, 1100):
        network = random_network(kind, seed, n_layers=60)
        x = np.random.default_rng(seed).standard_normal((5, *SHAPES[kind])).astype(np.float32)
        path, *_ = export(network, tmp_path / f"net{seed}", to=to)
        np.testing.assert_allclose(READERS[path.suffix](path, x), outputs(network, x), atol=1e-5, err_msg=str(seed))


def test_several_decision_layers_stay_stable_where_probabilities_vanish(tmp_path):
    """Logits of a few hundred: exponentials of their logarithms would be 0 and 0."""
    layers = [Layer("ip"), Layer("softmax"), Layer("softmax"), Layer("op")]
    arch = Architecture("mlp-class", layers, [(0, 1), (0, 2), (1, 3), (2, 3)])
    network = build(arch, input_shape=(4,), n_outputs=3, seed=0).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter *= 1500
    x = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    expected = outputs(network, x)
    assert expected.min() < -150
    for to in ("code", "onnx"):
        path, *_ = export(network, tmp_path / "net", to=to)
        np.testing.assert_allclose(READERS[path.suffix](path, x), expected, rtol=1e-5)


# -- code --------------------------------------------------------------------------------------------------------------


def imports_of(path):
    tree = ast.parse(path.read_text())
    return {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names} | {
        node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    }


def run_python(code, folder):
    """In a process that knows neither nasbot nor this repository: isolated, with the folder as its only addition."""
    program = f"import sys; sys.path.insert(0, {str(folder)!r})\n{code}"
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def table(rows=60, *, gaps=True):
    """Mixed columns, with gaps where wanted, and a constant one."""
    import pandas as pd

    rng = np.random.default_rng(5)
    frame = pd.DataFrame({
        "size": rng.normal(50, 20, rows),
        "colour": rng.choice(["red", "green", 'a "quoted"\\one'], rows),
        "rooms": rng.integers(1, 9, rows).astype(float),
        "same": 1.0,
    })  # fmt: skip
    if gaps:
        frame.loc[::7, "size"] = np.nan
        frame.loc[::9, "colour"] = None
    return frame, frame["rooms"].to_numpy() * 1000 + rng.normal(0, 10, rows)


def model_of(dataset, seed=0):
    arch = (
        SMALL
        if dataset.kind == "mlp-reg"
        else random_architecture("mlp-class", rng=np.random.default_rng(1), n_layers=5)
    )
    if dataset.kind == "cnn":
        arch = narrow(random_architecture("cnn", rng=np.random.default_rng(1), n_layers=8))
    network = build(arch, input_shape=dataset.input_shape, n_outputs=dataset.n_outputs, seed=seed).eval()
    return Model(network, dataset.preprocessing)


def test_code_imports_only_torch_and_predicts_from_raw_rows_of_any_kind(tmp_path):
    X, y = table()
    model = model_of(dataset_of(X, y))
    export(model, tmp_path / "houses.py", title="Prices of houses.")
    assert imports_of(tmp_path / "houses.py") - sys.stdlib_module_names == {"torch"}
    expected = model.preprocessing.restored(outputs(model.network, model.preprocessing.X(X)))
    (tmp_path / "rows.json").write_text(X.to_json(orient="records"))
    code = "import json, houses; rows = json.load(open('rows.json')); network = houses.load()\n"
    code += "print(json.dumps(houses.predict(network, rows).flatten().tolist())); print('nasbot' in sys.modules)"
    predicted, knows_us = run_python(code, tmp_path).splitlines()
    assert knows_us == "False"
    np.testing.assert_allclose(json.loads(predicted), expected, rtol=1e-6)


def loaded(path):
    spec = exporting.importlib.util.spec_from_file_location("exported", path)
    module = exporting.importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_code_takes_dates_as_objects_and_as_text(tmp_path):
    X, y = table()
    X["sold"] = pd.Timestamp("2021-01-30 07:00") + pd.to_timedelta(np.arange(len(X)) * 31, unit="h")
    X.loc[3, "sold"] = pd.NaT
    model = model_of(dataset_of(X, y))
    export(model, tmp_path / "houses.py")
    module, rows = loaded(tmp_path / "houses.py"), X.astype(object).where(X.notna(), None).to_dict("records")
    expected = model.preprocessing.X(X)
    np.testing.assert_allclose(module.prepare(rows).numpy(), expected, atol=1e-6)
    texts = [row | {"sold": None if row["sold"] is None else row["sold"].isoformat()} for row in rows]
    np.testing.assert_allclose(module.prepare(texts).numpy(), expected, atol=1e-6)


def test_code_for_tables_of_numbers_takes_arrays(tmp_path):
    X, y = table()
    X = X.drop(columns="colour")
    model = model_of(dataset_of(X, y))
    export(model, tmp_path / "net.py")
    module = loaded(tmp_path / "net.py")
    assert "same" in (tmp_path / "net.py").read_text()  # its place in a row is needed, though it is not looked at
    expected = model.preprocessing.restored(outputs(model.network, model.preprocessing.X(X)))
    np.testing.assert_allclose(module.predict(module.load(), X.to_numpy())[:, 0].numpy(), expected, rtol=1e-6)


# -- code and people's tables ------------------------------------------------------------------------------------------


def everyday(rows=60):
    """Numbers with gaps, categories, whole numbers that are categories, dates, and a column that says nothing."""
    frame, y = table(rows)
    frame["zip"] = pd.Categorical(np.arange(rows) % 3 + 10115)
    frame["sold"] = pd.Timestamp("2021-01-30 07:00") + pd.to_timedelta(np.arange(rows) * 31, unit="h")
    frame.loc[3, "sold"] = pd.NaT
    frame["seen"] = [f"{day % 28 + 1}.{day % 12 + 1}.{2019 + day % 3}" for day in range(rows)]
    return frame, y


@pytest.fixture(scope="module")
def houses(tmp_path_factory):
    folder = tmp_path_factory.mktemp("houses")
    X, y = everyday()
    model = model_of(dataset_of(X, y))
    export(model, folder / "houses.py")
    return model, loaded(folder / "houses.py"), X, folder


def in_polars(frame):
    polars = pytest.importorskip("polars")
    return polars.from_pandas(frame.assign(zip=frame["zip"].astype(str)))


FORMS = {
    "pandas": lambda frame: frame,
    "nullable": lambda frame: frame.convert_dtypes(),
    "polars": in_polars,
    "pyarrow": lambda frame: pytest.importorskip("pyarrow").Table.from_pandas(frame),
    "dictionaries": lambda frame: frame.astype(object).to_dict("records"),
    "objects": lambda frame: frame.astype(object).to_numpy(),
    "lists": lambda frame: frame.astype(object).to_numpy().tolist(),
    "codes as numbers": lambda frame: frame.assign(zip=frame["zip"].astype(float)),
    "other order, more columns": lambda frame: frame[frame.columns[::-1]].assign(more=1),
    "without what is not looked at": lambda frame: frame.drop(columns="same"),
}


@pytest.mark.parametrize("form", FORMS)
def test_code_takes_rows_in_any_form(form, houses):
    model, module, X, _ = houses
    given = FORMS[form](X)
    np.testing.assert_allclose(module.prepare(given).numpy(), model.preprocessing.X(X), atol=1e-6)
    np.testing.assert_allclose(module.predict(module.load(), given)[:, 0].numpy(), model.predict(X), rtol=1e-5)


def test_code_names_the_columns_that_are_missing(houses):
    _, module, X, _ = houses
    with pytest.raises(ValueError, match="no column 'size', 'zip'; got 'colour', 'rooms', 'same', 'sold', 'seen'"):
        module.prepare(X.drop(columns=["size", "zip"]))
    with pytest.raises(ValueError, match="no column 'zip'"):
        module.prepare([dict.fromkeys(X.columns, 1), {name: 1 for name in X.columns if name != "zip"}])
    with pytest.raises(ValueError, match=r"expected \(rows, 7\)"):
        module.prepare(X.to_numpy()[:, 1:])
    with pytest.raises(ValueError, match="expected rows of 7 values"):
        module.prepare([[1, 2]])


def test_code_says_which_categories_it_does_not_know(houses):
    model, module, X, _ = houses
    odd = X.assign(colour="mauve")
    with pytest.warns(UserWarning, match="column 'colour': 60 rows hold none of the known values, such as 'mauve'"):
        prepared = module.prepare(odd)
    np.testing.assert_allclose(prepared.numpy(), model.preprocessing.X(odd), atol=1e-6)


@pytest.mark.parametrize(("value", "said"), [("big", "column 'size', row 3: expected a number"), (np.inf, "infinite")])
def test_code_refuses_what_is_no_number(value, said, houses):
    _, module, X, _ = houses
    odd = X.astype({"size": object})
    odd.loc[2, "size"] = value
    with pytest.raises(ValueError, match=said):
        module.prepare(odd)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_code_predicts_the_lines_of_a_csv_file(separator, houses):
    model, _, X, folder = houses
    X.to_csv(folder / "new.csv", index=False, sep=separator)
    done = in_shell(folder, "houses.py", "new.csv")
    assert done.returncode == 0, done.stderr
    head, *lines = done.stdout.splitlines()
    assert head == "prediction"
    np.testing.assert_allclose([float(line) for line in lines], model.predict(X), rtol=1e-5)


def test_code_predicts_classes_of_a_csv_file_in_batches(tmp_path):
    X, _ = everyday()
    model = model_of(dataset_of(X, np.array(["cat", "it's"])[np.arange(len(X)) % 2]))
    export(model, tmp_path / "pets.py")
    X.to_csv(tmp_path / "new.csv", index=False)
    module = loaded(tmp_path / "pets.py")
    with (tmp_path / "out.csv").open("w") as out:
        module.predict_file(tmp_path / "new.csv", out, rows=7)
    found = pd.read_csv(tmp_path / "out.csv")
    assert list(found.columns) == ["prediction", "probability_cat", "probability_it's"]
    assert found["prediction"].tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(found.iloc[:, 1:], model.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "usage: python houses.py new.csv > predicted.csv"),
        (["none.csv"], "none.csv: "),
        (["short.csv"], "short.csv: no column 'size'"),
        (["ragged.csv"], "ragged.csv: expected 2 values in each line"),
    ],
)
def test_code_in_a_shell_says_what_is_wrong_in_one_line(arguments, said, houses):
    *_, folder = houses
    (folder / "short.csv").write_text("a,b\n1,2\n")
    (folder / "ragged.csv").write_text("a,b\n1,2,3\n")
    done = in_shell(folder, "houses.py", *arguments)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith(said)


def in_shell(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-I", "-W", "error", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.parametrize("shape", [(40, 8, 9), (40, 8, 9, 3), (40, 3, 8, 9)], ids=str)
def test_code_for_images_classifies_them_as_given(shape, tmp_path):
    rng = np.random.default_rng(3)
    X, y = rng.integers(0, 256, shape).astype(np.uint8), np.array(["cat", "dog", "it's"])[rng.integers(0, 3, 40)]
    model = model_of(dataset_of(X, y))
    export(model, tmp_path / "net.py")
    module = loaded(tmp_path / "net.py")
    network = module.load()
    logs = outputs(model.network, model.preprocessing.X(X))
    np.testing.assert_allclose(module.probabilities(network, X).numpy(), np.exp(logs), atol=1e-6)
    assert module.predict(network, X) == model.preprocessing.restored(logs).tolist()


def test_hostile_names_stay_text(tmp_path):
    import pandas as pd

    name = '"""; raise SystemExit(3) #\n\\'
    X = pd.DataFrame({name: np.arange(30.0), "b": np.arange(30.0) % 7})
    y = pd.Series(np.arange(30.0) + 0.5, name=name)
    export(model_of(dataset_of(X, y)), tmp_path / "net.py", title=name)
    module = loaded(tmp_path / "net.py")
    assert module.COLUMNS[0][0] == name


# -- ONNX and safetensors ----------------------------------------------------------------------------------------------


def test_onnx_takes_any_number_of_rows_and_says_what_the_data_went_through(tmp_path):
    import onnx

    X, y = table()
    model = model_of(dataset_of(X, y))
    path, *_ = export(model, tmp_path / "net.onnx")
    for n in (1, 33):
        x = np.zeros((n, *model.network.input_shape), np.float32)
        assert READERS[".onnx"](path, x).shape == (n, 1)
    (said,) = onnx.load(path).metadata_props
    assert json.loads(said.value) == model.preprocessing.to_dict()


def test_without_onnx_the_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(OptionError, match=r"the package onnx: pip install 'nasbot\[onnx\]'"):
        export(small(), tmp_path / "net.onnx")
    assert not list(tmp_path.iterdir())


def test_networks_of_ours_need_no_onnxscript(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    export(small(), tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx").stat().st_size > 100


def test_a_model_comes_back_from_its_file_exactly(tmp_path):
    X, y = table()
    model = Model(model_of(dataset_of(X, y)).network, dataset_of(X, y).preprocessing, {"trial": 3, "note": "nß"})
    (path,) = export(model, tmp_path / "net", to="safetensors")
    again = nasbot.load_model(path)
    assert again.network.arch == model.network.arch
    assert again.preprocessing == model.preprocessing
    assert again.details == model.details
    assert not again.network.training
    for name, tensor in model.network.state_dict().items():
        assert torch.equal(tensor, again.network.state_dict()[name]), name


def test_json_is_the_layer_graph(tmp_path):
    (path,) = export(small(), tmp_path / "net.json")
    assert Architecture.load(path) == SMALL


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (None, FileError),
        (b"", StorageError),
        (b"\xff" * 100, StorageError),
        (b"\x02\x00\x00\x00\x00\x00\x00\x00{}", StorageError),
        ("other metadata", StorageError),
        ("other shapes", StorageError),
        ("no architecture", StorageError),
    ],
    ids=str,
)
def test_files_that_hold_no_model_are_refused(content, error, tmp_path):
    from safetensors.torch import save

    path = tmp_path / "net.safetensors"
    record = {"format": 1, "architecture": SMALL.to_dict(), "input_shape": [7], "n_outputs": 2}
    record |= {"preprocessing": None, "details": {}}
    state = small().state_dict()
    if content == "other metadata":
        content = save(state, {"nasbot": "[]"})
    elif content == "other shapes":
        content = save(state, {"nasbot": json.dumps(record | {"n_outputs": 3})})
    elif content == "no architecture":
        content = save(state, {"nasbot": json.dumps(record | {"architecture": {"kind": "cnn"}})})
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(error, match=r"net\.safetensors") as caught:
        load_model(path)
    assert "\n" not in str(caught.value)


# -- what can go wrong -------------------------------------------------------------------------------------------------


def test_files_that_are_there_are_not_replaced_unless_asked(tmp_path):
    (tmp_path / "net.weights.safetensors").write_text("precious")
    with pytest.raises(FileError, match="is there already"):
        export(small(), tmp_path / "net.py")
    assert (tmp_path / "net.weights.safetensors").read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["net.weights.safetensors"]
    export(small(), tmp_path / "net.py", overwrite=True)
    assert loaded(tmp_path / "net.py").load()


@pytest.mark.parametrize("to", ["code", "onnx", "safetensors", "json"])
def test_a_full_disk_leaves_nothing_behind(to, tmp_path, monkeypatch):
    def full(self, data):
        Path.open(self, "wb").close()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    network = small()
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(FileError, match=r"cannot write .*net.*: No space left on device"):
        export(network, tmp_path / "net", to=to)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(FileError, match=r"cannot write .*: No such file or directory"):
        export(small(), tmp_path / "missing" / "net.py")


@pytest.mark.parametrize("ending", [".py", ".onnx", ".safetensors"])
def test_a_file_that_does_not_agree_is_not_kept(ending, tmp_path, monkeypatch):
    wrong = dict(READERS) | {ending: lambda *given: READERS[ending](*given) + 1e-3}
    monkeypatch.setattr(exporting, "READERS", wrong)
    with pytest.raises(ExportError, match=r"differ from the network's by 0\.001"):
        export(small(), tmp_path / f"net{ending}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("path", "to"), [("net.txt", None), ("net.py", "pickle"), ("", "code"), ("net", None)])
def test_unknown_forms_are_refused(path, to, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OptionError):
        export(small(), path, to=to)


def test_the_network_is_left_in_the_mode_it_was_in(tmp_path):
    network = small().train()
    export(network, tmp_path / "net.py")
    assert network.training


@pytest.mark.parametrize("is_there", [True, False])
def test_either_all_files_are_replaced_or_none(is_there, tmp_path, monkeypatch):
    """The second of two files cannot be put in its place: the first one goes back to what it was."""
    names = ["net.py", "net.weights.safetensors"]
    if is_there:
        export(small(), tmp_path / "net.py")
    before = {name: (tmp_path / name).read_bytes() for name in names if is_there}
    moves = Path.replace

    def failing(self, target):
        if Path(target) == tmp_path / names[1] and self.parent.name.startswith(".nasbot-export-"):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return moves(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    other = build(SMALL, input_shape=(7,), n_outputs=2, seed=9)
    with pytest.raises(FileError, match="Input/output error"):
        export(other, tmp_path / "net.py", overwrite=True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
