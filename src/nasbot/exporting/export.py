"""Taking a trained model away: as code, ONNX, safetensors or JSON; checked before it is put in its place.

Files are written beside their destination under another name, compared with the network on random inputs, and moved
there only when they agree: a full disk or a wrong file never replaces what was there.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from nasbot._files import file_errors
from nasbot._rng import Role, stream
from nasbot._typing import Json
from nasbot.architecture import Architecture, Vocabulary
from nasbot.errors import ExportError, FileError, OptionError
from nasbot.exporting.code_file import code_of, renamed_weights
from nasbot.exporting.model_file import Model, load_model
from nasbot.exporting.onnx_file import onnx_of, onnx_outputs
from nasbot.exporting.raw_numbers import raw_examples
from nasbot.training.ensemble import Ensemble, networks_of
from nasbot.training.module import Network

ENDINGS = {"code": ".py", "onnx": ".onnx", "safetensors": ".safetensors", "json": ".json"}
WEIGHTS = ".weights.safetensors"  # beside code; what ends in .safetensors alone is a whole model
TOLERANCE = 1e-5  # of outputs, relative to the largest of them where that is above 1
ROWS = 16  # to compare on


def export(
    model: Model | Network | Ensemble | Architecture,
    path: str | Path,
    *,
    to: str | None = None,
    title: str = "",
    raw: bool = False,
    overwrite: bool = False,
) -> tuple[Path, ...]:
    """Write a trained network or ensemble for use elsewhere, and return the files written.

    ``to`` is "code" (one Python file that imports only torch, and its weights beside it), "onnx", "safetensors"
    (weights and all that is needed to build the model again; ``nasbot.load_model`` reads it) or "json" (the layer
    graph alone, all that can be written of an Architecture); where it is None the ending of ``path`` says it. A path
    without that ending gets it. An ensemble is one file, too, in all forms but JSON, which has no room for it.

    With ``raw`` an ONNX file takes rows of numbers (gaps are NaN) or images as they were before preparation and gives
    predictions in their own units, or probabilities; OptionError where a column holds anything but numbers.

    What is written is read back and must give the network's own outputs. FileError where a file is there already
    (``overwrite`` replaces it) or cannot be written, ExportError where it would not agree; nothing is left behind then.
    """
    given: object = model
    if not isinstance(given, Model | Network | Ensemble | Architecture):
        raise OptionError(
            f"model: expected a Model, Network, Ensemble or Architecture, got {type(given).__name__}; that of a "
            "search on data is study.model()"
        )
    target = _target(Path(path), to)
    if target.suffix == ENDINGS["json"] or isinstance(model, Architecture):
        return _graph_placed(model, target, overwrite=overwrite)
    if raw and target.suffix != ENDINGS["onnx"]:
        raise OptionError(f"raw: expected onnx; {target.name} takes raw rows anyway, or is no model that takes any")
    model = model if isinstance(model, Model) else Model(model)
    depths = " and ".join(network.arch.depth for network in model.networks)
    kind = "A network" if len(model.networks) == 1 else "The weighted mean of networks"
    title = title or f"{kind}, {depths}, found by nasbot."
    was_training = model.network.training
    model.network.eval()
    try:
        network = model.network
        check = partial(_check_raw, model=model) if raw else partial(_check, network=network)
        return _placed(target, _writers(model, target, title, raw), check, overwrite=overwrite)
    finally:
        model.network.train(was_training)


def form_of(path: str | Path, to: str | None) -> str:
    """The form that ``to`` says, or else the ending of the path; OptionError where neither does."""
    endings = {ending: name for name, ending in ENDINGS.items()}
    wanted = endings.get(Path(path).suffix) if to is None else to
    if wanted not in ENDINGS:
        given = f"got {to!r}" if to is not None else f"got the path {str(path)[:60]!r}"
        raise OptionError(f"to: expected {', '.join(ENDINGS)}, {given}")
    return wanted


def _target(path: Path, to: str | None) -> Path:
    wanted = form_of(path, to)
    if not path.name or path.name.startswith("."):
        raise OptionError(f"path: expected the name of a file, got {str(path)[:60]!r}")
    ending = ENDINGS[wanted]
    return path if path.suffix == ending else path.with_name(path.name + ending)


def _writers(model: Model, target: Path, title: str, raw: bool) -> dict[Path, Callable[[], bytes]]:
    """The content of each file, written when its turn comes."""
    network, preprocessing = model.network, model.preprocessing
    if target.suffix == ".py":
        weights = target.with_suffix(WEIGHTS)
        text = code_of(network, preprocessing, title=title, weights=weights.name)
        return {weights: lambda: _plain_safetensors(network), target: lambda: text.encode()}
    if target.suffix == ".onnx":
        metadata: dict[str, Json] = {} if preprocessing is None else {"preprocessing": preprocessing.to_dict()}
        return {target: lambda: onnx_of(network, metadata=metadata, preprocessing=preprocessing, raw=raw)}
    return {target: model.to_bytes}


def _graph_placed(
    model: Model | Network | Ensemble | Architecture, target: Path, *, overwrite: bool
) -> tuple[Path, ...]:
    if target.suffix != ENDINGS["json"]:
        raise OptionError(f"to: an Architecture has no weights, so it is written as json only, not to {target.name}")
    network = model.network if isinstance(model, Model) else model
    if isinstance(network, Ensemble):
        raise OptionError("to: an ensemble has several layer graphs, and json holds one; take the single network")
    arch = network if isinstance(network, Architecture) else network.arch
    return _placed(target, {target: lambda: arch.to_json().encode()}, lambda _: None, overwrite=overwrite)


def _plain_safetensors(network: Network | Ensemble) -> bytes:
    from safetensors.torch import save

    return save(renamed_weights(network))


def _placed(
    target: Path, writers: Mapping[Path, Callable[[], bytes]], check: Callable[[Path], None], *, overwrite: bool
) -> tuple[Path, ...]:
    for path in writers:
        if path.exists() and not overwrite:
            raise FileError(f"{path} is there already; choose another name, or say overwrite (--overwrite)")
    with (
        file_errors(f"cannot write {target}"),
        TemporaryDirectory(prefix=".nasbot-export-", dir=target.parent, ignore_cleanup_errors=True) as name,
    ):
        folder = Path(name)
        for path, content in writers.items():
            (folder / path.name).write_bytes(content())
        check(folder / target.name)
        _exchange(folder, list(writers))
    return (target, *(path for path in writers if path != target))


def _exchange(folder: Path, paths: Sequence[Path]) -> None:
    """Put all files of the folder in their places, or none: what was there comes back where one cannot be."""
    kept = folder / "before"
    kept.mkdir()
    placed: list[Path] = []
    try:
        for path in paths:
            placed.append(path)
            if path.exists() or path.is_symlink():
                path.replace(kept / path.name)
            (folder / path.name).replace(path)
    except BaseException:
        for path in placed:
            with suppress(OSError):
                if (kept / path.name).exists() or (kept / path.name).is_symlink():
                    (kept / path.name).replace(path)
                elif not (folder / path.name).exists():  # it was placed, where nothing was
                    path.unlink()
        raise


# -- the same outputs --------------------------------------------------------------------------------------------------


def _check(path: Path, network: Network | Ensemble) -> None:
    x = stream(0, 0, Role.WEIGHTS).standard_normal((ROWS, *network.input_shape)).astype(np.float32)
    with torch.no_grad():
        ours = network(torch.from_numpy(x)).numpy()
    _check_equal(path, ours, READERS[path.suffix](path, x, networks_of(network)[0].arch.vocabulary))


def _check_raw(path: Path, model: Model) -> None:
    """On rows and images like those of the training data, gaps among them."""
    assert model.preprocessing is not None
    rows, fed = raw_examples(model.preprocessing, ROWS, stream(0, 0, Role.WEIGHTS))
    ours = model.predict_proba(rows) if model.classes else model.predict(rows).reshape(ROWS, -1)
    _check_equal(path, ours, onnx_outputs(path.read_bytes(), fed))


def _check_equal(path: Path, ours: np.ndarray, theirs: np.ndarray) -> None:
    scale = max(1.0, float(np.abs(ours).max()))
    difference = float(np.abs(ours - theirs).max()) / scale
    if not difference <= TOLERANCE:
        raise ExportError(
            f"the file for {path.name} gives outputs that differ from the network's by {difference:.3g}, more than "
            f"{TOLERANCE:g}; it was not kept, please report it"
        )


def _outputs_of_code(path: Path, x: np.ndarray, vocabulary: Vocabulary | None = None) -> np.ndarray:
    spec = importlib.util.spec_from_file_location("nasbot_exported_network", path)
    if spec is None or spec.loader is None:
        raise ExportError(f"{path.name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with torch.no_grad():
        outputs: np.ndarray = module.load()(torch.from_numpy(x)).numpy()
    return outputs


def _outputs_of_onnx(path: Path, x: np.ndarray, vocabulary: Vocabulary | None = None) -> np.ndarray:
    return onnx_outputs(path.read_bytes(), x)


def _outputs_of_safetensors(path: Path, x: np.ndarray, vocabulary: Vocabulary | None = None) -> np.ndarray:
    with torch.no_grad():
        outputs: np.ndarray = load_model(path, vocabulary=vocabulary).network(torch.from_numpy(x)).numpy()
    return outputs


READERS: Mapping[str, Callable[..., np.ndarray]] = {
    ".py": _outputs_of_code,
    ".onnx": _outputs_of_onnx,
    ".safetensors": _outputs_of_safetensors,
}
