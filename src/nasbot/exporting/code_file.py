"""A trained network or ensemble as one Python file that needs only torch, layer by layer, its weights beside it.

The weights are a safetensors file, in which the tensors lie in the order of their names: the file of code reads it
without the package of that name. What was done to the data is in the code as plain numbers.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import Any

import torch
from torch import Tensor, nn

from nasbot.architecture.activations import ACTIVATIONS
from nasbot.data.preparations import Preparation
from nasbot.data.preprocessing import Images, NumberTarget, Preprocessing, Table
from nasbot.errors import ExportError
from nasbot.exporting.code_tables import columns_constant, imports_of, main_of, prepare_table
from nasbot.exporting.lowering import INPUT, lowered
from nasbot.training.ensemble import Ensemble, networks_of
from nasbot.training.module import RATE_SCALE, Network
from nasbot.training.operations import Step

WIDTH = 120
FUNCTIONAL = "torch.nn.functional"
OPERATIONS = {
    "max_pool": FUNCTIONAL + ".max_pool2d({0}, {size}, ceil_mode=True)",
    "avg_pool": FUNCTIONAL + ".avg_pool2d({0}, {size}, ceil_mode=True)",
    "pixel_mean": "{0}.mean(dim=(2, 3))",
    "cat": "torch.cat([{all}], dim=1)",
    "add": "{0} + {1}",
    "pad": FUNCTIONAL + ".pad({0}, (0, 0, 0, 0, 0, {size}))",
    "cut": "{0}[:, :{size}]",
    "log_softmax": "torch.log_softmax({0}, dim=1)",
    "mean": "torch.stack([{all}]).mean(dim=0)",
    "scale": "{0} * torch.tensor({factors})",
    "log_mean_exp": "(torch.logsumexp(torch.stack([{all}]), dim=0) - {log_count})",
}

HEAD = '''"""{title}

It needs torch and the weights beside it, {weights}, and nothing else:

    network = load()
{usage}

{shape}
"""

{imports}import torch
'''

LOAD = '''

def load(path=__file__.removesuffix(".py") + ".weights.safetensors"):
    """The trained network. The file begins with the length of its header, and has its tensors in the order of names."""
    network = Network()
    state = {name: tensor for name, tensor in network.state_dict().items() if tensor.is_floating_point()}
    names = sorted(state)
    with open(path, "rb") as file:
        file.seek(8 + int.from_bytes(file.read(8), "little"))
        numbers = torch.frombuffer(bytearray(file.read()), dtype=torch.float32)
    tensors = numbers.split([state[name].numel() for name in names])
    weights = {name: tensor.view_as(state[name]) for name, tensor in zip(names, tensors)}
    network.load_state_dict(network.state_dict() | weights)
    return network.eval()
'''

PREPARE_IMAGES = '''

def prepare(images):
    """Images as they were given to nasbot, {layout}, as the network sees them."""
    images = torch.asarray(images, copy=True).to(torch.float32)
    if images.ndim == 3:
        images = images[:, None]
{move}    return (images - torch.tensor(CENTRES)[:, None, None]) / torch.tensor(SCALES)[:, None, None]
'''

ENCODE = '''

def encoded{i}(rows):
    """Standardised rows as {whom} sees them: {what}."""
    columns = list(rows.to(torch.float64)[:, :, None].unbind(dim=1))
    for column, {fields} in NUMBERS{i}:
        x = columns[column].contiguous()
{encode}
    return torch.cat(columns, dim=1).to(rows.dtype)
'''

PREPARE = '''

def prepare(rows):
    """Rows as ``standardised`` takes them, as the network sees them."""
    return encoded(standardised(rows))
'''

ENCODINGS = {
    "robust": (
        "numbers clipped smoothly at 3",
        "centre, scale",
        """
        z = (x - centre) / scale
        columns[column] = z / torch.sqrt(1 + (z / 3) ** 2)""",
    ),
    "quantile": (
        "numbers by their rank among the training rows, as normal scores",
        "knots, scores",
        """
        knots, scores = x.new_tensor(knots), x.new_tensor(scores)
        k = torch.searchsorted(knots, x).clamp(1, len(knots) - 1)
        share = ((x - knots[k - 1]) / (knots[k] - knots[k - 1])).clamp(0, 1)
        columns[column] = scores[k - 1] + share * (scores[k] - scores[k - 1])""",
    ),
    "ple": (
        "a number for each bin, -1 below it, 1 above it",
        "edges",
        """
        edges = x.new_tensor(edges)
        columns[column] = 2 * ((x - edges[:-1]) / edges.diff()).clamp(0, 1) - 1""",
    ),
}

PREDICT_NUMBERS = '''

def predict(network, {what}):
    """{names} for each row, in the units of the data."""
    with torch.no_grad():
        outputs = network(prepare({what}))
    scales, centres = (torch.tensor(numbers, dtype=torch.float64) for numbers in (TARGET_SCALES, TARGET_CENTRES))
    return {outputs}.to(torch.float64) * scales + centres
'''

AVERAGE_NUMBERS = """
        return (outputs{limits} * outputs.new_tensor(WEIGHTS)[:, None, None]).sum(dim=0)
"""

AVERAGE_CLASSES = """
        return torch.logsumexp(outputs + outputs.new_tensor(WEIGHTS).log()[:, None, None], dim=0)
"""

LIMITED = ".clamp(*outputs.new_tensor(LIMITS))"

PREDICT_CLASSES = '''

def probabilities(network, {what}):
    """One row of probabilities for each of {what}, in the order of CLASSES."""
    with torch.no_grad():
        return network(prepare({what})).exp()


def predict(network, {what}):
    """The most likely class of each of {what}."""
    return [CLASSES[i] for i in probabilities(network, {what}).argmax(dim=1).tolist()]
'''


def code_of(network: Network | Ensemble, preprocessing: Preprocessing | None, *, title: str, weights: str) -> str:
    """The text of the Python file; ``weights`` is the name of the file that stands beside it."""
    for member in networks_of(network):
        for step in lowered(member):
            if step.op == "module":
                raise ExportError(
                    f"layer {step.layer} ({member.arch.layers[step.layer].label}) is a module of your own, and "
                    "exported code imports only torch; export to onnx or safetensors"
                )
    what = "rows" if preprocessing is None or isinstance(preprocessing.inputs, Table) else "images"
    usage = "    outputs = network(x)" if preprocessing is None else f"    predict(network, {what})"
    shape = "x has the shape (n, " + ", ".join(map(str, network.input_shape)) + ")"
    shape += ", already prepared." if preprocessing is None else ": that is what prepare gives and the network takes."
    imports = ""
    if preprocessing is not None and isinstance(preprocessing.inputs, Table):
        own = _docstring(weights.removesuffix(".weights.safetensors"))
        usage += f"\n\nor in a shell, for the lines of a CSV file:\n\n    python {own}.py new.csv > predicted.csv"
        imports = imports_of(preprocessing.inputs) + "\n"
    parts = [
        HEAD.format(title=_docstring(title), weights=_docstring(weights), usage=usage, shape=shape, imports=imports)
    ]
    if preprocessing is not None:
        parts.append(_constants(preprocessing))
    parts.append(_limits(network, preprocessing))
    if isinstance(network, Ensemble):
        parts += [f"\nWEIGHTS = {_literal(network.weights)}\n", _average(network)]
    else:
        preparation = None if preprocessing is None else preprocessing.preparation
        parts += [_encoding(preparation, "", "the network"), _module(network, "Network")]
    parts.append(LOAD)
    if preprocessing is not None:
        parts += [_prepare(preprocessing), _predict(preprocessing, what)]
        parts.append(main_of(preprocessing) if what == "rows" else "")
    return "".join(parts)


def renamed_weights(network: Network | Ensemble) -> dict[str, Tensor]:
    """The network's floating-point state under the names that the code has for its parts."""
    if isinstance(network, Ensemble):
        named = [renamed_weights(member).items() for member in network.networks]
        return {f"member{i}.{name}": tensor for i, state in enumerate(named, 1) for name, tensor in state}
    attributes = {step.part: step.attribute for step in lowered(network) if step.part}
    state = {}
    for name, tensor in network.state_dict().items():
        part, _, own = name.rpartition(".")
        if tensor.is_floating_point() and name != RATE_SCALE:  # which stands in the code
            state[f"{attributes[part]}.{own}"] = tensor.detach().to(torch.float32).contiguous()
    return state


# -- the class ---------------------------------------------------------------------------------------------------------


def _average(ensemble: Ensemble) -> str:
    """The classes of the members, what prepares their inputs, and the class that averages what they say."""
    parts, calls = [], []
    known: dict[Preparation, str] = {}
    for i, (member, step) in enumerate(zip(ensemble.networks, ensemble.preparations, strict=True), 1):
        if step is not None and step not in known:
            known[step] = str(len(known) + 1)
            parts.append(_encoding(step, known[step], "a member"))
        parts.append(_module(member, f"Member{i}"))
        calls.append(f"self.member{i}({INPUT if step is None else f'encoded{known[step]}({INPUT})'})")
    lines = ["", "", "class Network(torch.nn.Module):"]
    lines += [f'    """The weighted mean of {len(calls)} networks; gives {_gives(ensemble)}."""', ""]
    lines += ["    def __init__(self):", "        super().__init__()"]
    lines += [f"        self.member{i} = Member{i}()" for i in range(1, len(calls) + 1)]
    lines += ["", f"    def forward(self, {INPUT}):", *_wrapped(f"        outputs = torch.stack([{', '.join(calls)}])")]
    average = AVERAGE_CLASSES if ensemble.classifies else AVERAGE_NUMBERS
    limits = LIMITED if _is_limited(ensemble) else ""
    return "".join(parts) + "\n".join(lines) + average.format(limits=limits)


def _module(network: Network, name: str) -> str:
    steps = lowered(network)
    lines = ["", "", f"class {name}(torch.nn.Module):", '    """' + _summary(network) + '"""', ""]
    lines += ["    def __init__(self):", "        super().__init__()"]
    lines += [
        f"        self.{step.attribute} = {_constructor(step.module)}" for step in steps if step.module is not None
    ]
    lines += ["", f"    def forward(self, {INPUT}):"]
    arch, layer = network.arch, 0
    inlined: dict[str, str] = {}
    for step, is_inlined in zip(steps, _inlined(steps), strict=True):
        if step.layer != layer:
            layer = step.layer
            parents = ", ".join(map(str, arch.parents[layer]))
            lines.append(f"        # {layer}: {arch.layers[layer]} <- {parents}")
        expression = _expression(step, [inlined.get(taken, taken) for taken in step.inputs])
        if is_inlined:
            inlined[step.value] = expression
        else:
            lines += _wrapped(f"        {step.value} = {expression}")
    lines.append(f"        return {steps[-1].value}")
    return "\n".join(lines) + "\n"


def _summary(network: Network) -> str:
    return f"{network.arch.depth[0].upper()}{network.arch.depth[1:]}; gives {_gives(network)}."


def _gives(network: Network | Ensemble) -> str:
    gives = "the logarithms of class probabilities" if network.classifies else "standardised numbers"
    return f"{gives}, (n, {network.n_outputs})"


def _constructor(module: nn.Module) -> str:
    if isinstance(module, nn.Linear):
        return f"torch.nn.Linear({module.in_features}, {module.out_features})"
    if isinstance(module, nn.Conv2d):
        options = f", bias={module.bias is not None}" if module.bias is None else ""
        size, stride, padding = module.kernel_size[0], module.stride[0], module.padding[0]
        shape = f"{module.in_channels}, {module.out_channels}, {size}, stride={stride}, padding={padding}"
        return f"torch.nn.Conv2d({shape}{options})"
    if isinstance(module, nn.LayerNorm):
        return f"torch.nn.LayerNorm({module.normalized_shape[0]})"
    return f"torch.nn.{type(module).__name__}({module.num_features})"


def _inlined(steps: list[Step]) -> list[bool]:
    """Which steps stand inside the line of the one that takes their value, where that is of the same layer.

    Shortcuts of residual layers have a line of their own, and so has what is taken twice.
    """
    takers: dict[str, list[Step]] = {}
    for step in steps:
        for taken in step.inputs:
            takers.setdefault(taken, []).append(step)
    found = []
    for step in steps:
        taken_by = takers.get(step.value, [])
        stands_inside = len(taken_by) == 1 and taken_by[0].layer == step.layer and not _takes_twice(taken_by[0])
        found.append(stands_inside and not (taken_by[0].op == "add" and taken_by[0].inputs[1] == step.value))
    return found


def _takes_twice(step: Step) -> bool:
    return step.op == "activation" and ACTIVATIONS[step.activation].code.count("{0}") > 1


def _expression(step: Step, taken: Sequence[str]) -> str:
    if step.module is not None:
        return f"self.{step.attribute}({taken[0]})"
    template = ACTIVATIONS[step.activation].code if step.op == "activation" else OPERATIONS[step.op]
    filled = {"all": ", ".join(taken), "size": step.size, "factors": list(step.factors)}
    return template.format(*taken, **filled, log_count=math.log(len(taken)))


def _wrapped(line: str) -> list[str]:
    """A line that is too long continues with the next value it takes."""
    return textwrap.wrap(line, WIDTH, subsequent_indent=" " * 12, break_long_words=False, break_on_hyphens=False)


# -- data in and out ---------------------------------------------------------------------------------------------------


def _constants(preprocessing: Preprocessing) -> str:
    named: dict[str, list[Any]] = {}
    inputs, target = preprocessing.inputs, preprocessing.target
    if isinstance(inputs, Images):
        named |= {"CENTRES": list(inputs.centres), "SCALES": list(inputs.scales)}
    if isinstance(target, NumberTarget):
        named |= {"TARGET_CENTRES": list(target.centres), "TARGET_SCALES": list(target.scales)}
    else:
        named |= {"CLASSES": list(target.classes)}
    text = "".join(f"\n{name} = {_literal(value)}" for name, value in named.items()) + "\n"
    return text + (columns_constant(inputs) if isinstance(inputs, Table) else "")


def _limits(network: Network | Ensemble, preprocessing: Preprocessing | None) -> str:
    """Lowest and highest outputs, in standardised units."""
    if isinstance(network, Ensemble):
        limits = network.limits.cpu().numpy() if _is_limited(network) else None
    else:
        target = None if preprocessing is None else preprocessing.target
        limits = target.standard_limits if isinstance(target, NumberTarget) and target.limits else None
    return "" if limits is None else f"\n# lowest and highest outputs\nLIMITS = {_literal(limits.tolist())}\n"


def _is_limited(ensemble: Ensemble) -> bool:
    return not ensemble.classifies and bool(ensemble.limits.isfinite().all())


def _encoding(preparation: Preparation | None, i: str, whom: str) -> str:
    """The second step of numbers: a table, and a function that looks into it."""
    if preparation is None:
        return ""
    rows = [astuple(number) for number in preparation.numbers]
    text = f"\n# of standardised numbers: column, and what encoded{i} needs\nNUMBERS{i} = [\n"
    text += "".join(f"    {row!r},\n" for row in rows) + "]\n"
    what, fields, encode = ENCODINGS[preparation.name]
    return text + ENCODE.format(i=i, whom=whom, what=what, fields=fields, encode=encode.lstrip("\n"))


def _prepare(preprocessing: Preprocessing) -> str:
    inputs = preprocessing.inputs
    if isinstance(inputs, Images):
        layout = "(n, height, width, channels)" if inputs.channels_last else "(n, channels, height, width)"
        move = "    else:\n        images = images.movedim(-1, 1)\n" if inputs.channels_last else ""
        return PREPARE_IMAGES.format(layout=layout, move=move)
    preparation = preprocessing.preparation
    name, result = ("prepare", "as the network sees it") if preparation is None else ("standardised", "standardised")
    return prepare_table(inputs, name, result) + PREPARE * (preparation is not None)


def _predict(preprocessing: Preprocessing, what: str) -> str:
    target = preprocessing.target
    if isinstance(target, NumberTarget):
        outputs = "outputs" + LIMITED * bool(target.limits)
        return PREDICT_NUMBERS.format(what=what, names=_docstring(", ".join(target.names)), outputs=outputs)
    return PREDICT_CLASSES.format(what=what)


def _literal(values: Iterable[object]) -> str:
    """A list, over several lines where one is too short for it."""
    items = [repr(value) for value in values]
    line = f"[{', '.join(items)}]"
    return line if len(line) <= WIDTH - 20 else "[\n" + "".join(f"    {item},\n" for item in items) + "]"


def _docstring(text: str) -> str:
    """Text that can stand in a docstring: people's column names may hold anything."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain.replace("\\", "/").replace('"', "'")
