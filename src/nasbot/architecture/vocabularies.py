"""The paper's three vocabularies (Appendix A.3, "Label Penalty Matrices"): MLP-REG, MLP-CLASS and CNN.

Beside them, ours: ``mlp-reg+`` and ``mlp-class+`` are the paper's with the other activations of ``activations.py``, a
residual dense layer and layer normalisation. A residual layer is to a relu layer what res is to conv in a CNN; a
normalisation weighs as much as the channels it passes on, and matches only its like.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, product

from nasbot.architecture.activations import ACTIVATIONS
from nasbot.architecture.labels import Label, Role, Signal, Vocabulary
from nasbot.architecture.penalties import NON_ASSIGNMENT_COST, LabelPenalties
from nasbot.errors import VocabularyError


def _activations(family: str, *, in_paper: bool) -> tuple[str, ...]:
    return tuple(name for name, row in ACTIVATIONS.items() if row.family == family and row.in_paper == in_paper)


RECTIFIERS, SIGMOIDS = (_activations(family, in_paper=True) for family in ("rectifier", "sigmoid"))
OUR_RECTIFIERS, OUR_SIGMOIDS = (_activations(family, in_paper=False) for family in ("rectifier", "sigmoid"))
RESIDUAL = 0.1  # of the cost of no assignment: what a shortcut adds to the distance between two layers
DECISIONS = {"linear": "", "softmax": "softmax"}  # decision labels, and what they do to their sums
RESIDUAL_DENSE, LAYER_NORM = "res-dense", "layer-norm"
KERNEL_SIZES = (3, 5, 7)
CONVOLUTIONS = {k: f"conv{k}" for k in KERNEL_SIZES}
RESIDUALS = {k: f"res{k}" for k in KERNEL_SIZES}


def mlp_penalties(labels: tuple[str, ...]) -> LabelPenalties:
    """Table "MLP" of App. A.3: 0.1 inside rectifiers and inside sigmoids, 0.25 between the two.

    M(res-dense, x) = 0.9 M(relu, x) + 0.1, as for residual convolutions.
    """
    rectifiers = [x for x in (*RECTIFIERS, *OUR_RECTIFIERS) if x in labels]
    sigmoids = [x for x in (*SIGMOIDS, *OUR_SIGMOIDS) if x in labels]
    within = [*combinations(rectifiers, 2), *combinations(sigmoids, 2)]
    pairs = dict.fromkeys(within, 0.1) | dict.fromkeys(product(rectifiers, sigmoids), 0.25)
    if RESIDUAL_DENSE in labels:
        for x in (*rectifiers, *sigmoids):
            plain = 0.0 if x == "relu" else 0.25 if x in sigmoids else 0.1
            pairs[RESIDUAL_DENSE, x] = (1 - RESIDUAL) * plain + RESIDUAL * NON_ASSIGNMENT_COST
    return LabelPenalties.from_pairs(labels, pairs)


def cnn_penalties(
    labels: tuple[str, ...], *, near: float = 0.2, far: float = 0.3, pools: float = 0.25
) -> LabelPenalties:
    """Table "CNN" of App. A.3: ``near`` between kernels 3-5 and 5-7, ``far`` between 3-7, res as conv among themselves.

    M(res k, conv j) = (1 - RESIDUAL) M(conv k, conv j) + RESIDUAL * 1, the 1 being the non-assignment cost.
    """
    kernels = {(k, j): 0.0 if k == j else near if abs(k - j) == 2 else far for k, j in product(KERNEL_SIZES, repeat=2)}
    pairs = {("max-pool", "avg-pool"): pools}
    for (k, j), penalty in kernels.items():
        pairs[CONVOLUTIONS[k], CONVOLUTIONS[j]] = penalty
        pairs[RESIDUALS[k], RESIDUALS[j]] = penalty
        pairs[RESIDUALS[k], CONVOLUTIONS[j]] = (1 - RESIDUAL) * penalty + RESIDUAL * NON_ASSIGNMENT_COST
    return LabelPenalties.from_pairs(labels, pairs)


def _ends(signal: Signal) -> tuple[Label, Label]:
    ip = Label(name="ip", role=Role.INPUT, emits=signal, family="end")
    return ip, Label(name="op", role=Role.OUTPUT, family="end")


def _mlp(name: str, decision: str, *, extended: bool = False) -> Vocabulary:
    dense = [
        Label(
            name=x,
            takes_units=True,
            family=ACTIVATIONS[x].family,
            group=ACTIVATIONS[x].family,
            width_factor=1 + ACTIVATIONS[x].of_both_signs,
            activation=x,
        )
        for x in (*RECTIFIERS, *OUR_RECTIFIERS * extended, *SIGMOIDS, *OUR_SIGMOIDS * extended)
    ]
    ending = Label(name=decision, role=Role.DECISION, family="decision", activation=DECISIONS[decision])
    more = (
        Label(
            name=RESIDUAL_DENSE,
            takes_units=True,
            family="res",
            group="rectifier",
            mass_factor=2.0,
            activation="relu",
            operation="res-dense",
        ),
        Label(name=LAYER_NORM, family="norm", operation="layer-norm"),
    )
    labels = (*_ends(Signal.VECTOR), *dense, *more * extended, ending)
    return Vocabulary(name, labels, mlp_penalties(tuple(label.name for label in labels)))


def _cnn() -> Vocabulary:
    def image_label(name: str, family: str, k: int, mass_factor: float, n_convolutions: int) -> Label:
        return Label(
            name=name,
            takes_units=True,
            strides=(1, 2),
            takes=Signal.IMAGE,
            emits=Signal.IMAGE,
            family=family,
            group="conv",
            mass_factor=mass_factor,
            kernel_size=k,
            n_convolutions=n_convolutions,
            activation="relu",
        )

    convolutions = [image_label(name, "conv", k, 1.0, 1) for k, name in CONVOLUTIONS.items()]
    residuals = [image_label(name, "res", k, 2.0, 2) for k, name in RESIDUALS.items()]
    pools = [
        Label(
            name=name,
            shrinks=2,
            takes=Signal.IMAGE,
            emits=Signal.IMAGE,
            may_follow_input=False,
            family="pool",
            group="pool",
            joins_skips=joins_skips,
            pooling=pooling,
        )
        for name, pooling, joins_skips in (("max-pool", "max", False), ("avg-pool", "average", True))
    ]
    # App. A.3, "Other details": a unit of a convolution is an image, a unit of fc a scalar; hence the 0.1.
    fc = Label(
        name="fc",
        takes_units=True,
        takes=Signal.ANY,
        may_follow_input=False,
        family="fc",
        group="fc",
        mass_factor=0.1,
        activation="relu",
    )
    softmax = Label(
        name="softmax",
        role=Role.DECISION,
        takes=Signal.ANY,
        may_follow_input=False,
        family="decision",
        activation=DECISIONS["softmax"],
    )
    labels = (*_ends(Signal.IMAGE), *convolutions, *residuals, *pools, fc, softmax)
    return Vocabulary("cnn", labels, cnn_penalties(tuple(label.name for label in labels)))


MLP_REG = _mlp("mlp-reg", "linear")
MLP_CLASS = _mlp("mlp-class", "softmax")
CNN = _cnn()
MLP_REG_PLUS = _mlp("mlp-reg+", "linear", extended=True)
MLP_CLASS_PLUS = _mlp("mlp-class+", "softmax", extended=True)
BUILT_IN: Mapping[str, Vocabulary] = {x.name: x for x in (MLP_REG, MLP_CLASS, CNN, MLP_REG_PLUS, MLP_CLASS_PLUS)}
OWN: dict[str, Vocabulary] = {}  # those that the caller has named to this process (own_vocabulary.py)
HOW_TO_NAME_ONE = (
    "a vocabulary of your own is named with --vocabulary MODULE:NAME, in Python with nasbot.use_vocabulary, "
    "or passed as an object"
)


def vocabulary_of(kind: str | Vocabulary) -> Vocabulary:
    """The vocabulary itself, or the one of that name: built in, or named to this process by ``use_vocabulary``."""
    if isinstance(kind, Vocabulary):
        return kind
    found = BUILT_IN.get(str(kind)) or OWN.get(str(kind))
    if found is None:
        raise VocabularyError(
            f"unknown kind of network {str(kind)[:60]!r}; built in: {', '.join(BUILT_IN)}; {HOW_TO_NAME_ONE}"
        )
    return found
