"""A vocabulary of small MobileNets: depthwise convolutions, alone or inside inverted residual blocks.

nasbot run images.npz --vocabulary examples.mobilenets:MOBILE --pool examples.mobilenets:POOL
"""

from torch import nn

from nasbot import Label, LabelPenalties, Layer, Role, Signal, Vocabulary
from nasbot.architecture import chain

EXPANSION = 3


def convolution(entering, leaving, size=1, stride=1, groups=1):
    """Convolution and batch normalisation, of which n pixels leave as ceil(n / stride)."""
    conv = nn.Conv2d(entering, leaving, size, stride=stride, padding=size // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(leaving))


class Separable(nn.Module):
    """MobileNetV1: a filter for each channel, then channels mixed at each pixel."""

    def __init__(self, entering, leaving, stride=1):
        super().__init__()
        self.depthwise = convolution(entering, entering, 3, stride, groups=entering)
        self.pointwise = convolution(entering, leaving)

    def forward(self, x):
        return self.pointwise(self.depthwise(x).relu()).relu()


class InvertedResidual(nn.Module):
    """MobileNetV2: widen, filter each channel, narrow; added to the input where the shapes agree."""

    def __init__(self, entering, leaving, stride=1, size=3):
        super().__init__()
        inside = EXPANSION * entering
        self.widen = convolution(entering, inside)
        self.depthwise = convolution(inside, inside, size, stride, groups=inside)
        self.narrow = convolution(inside, leaving)
        self.is_residual = stride == 1 and entering == leaving

    def forward(self, x):
        y = self.narrow(nn.functional.relu6(self.depthwise(nn.functional.relu6(self.widen(x)))))
        return x + y if self.is_residual else y


class InvertedResidual5(InvertedResidual):
    def __init__(self, entering, leaving, stride=1):
        super().__init__(entering, leaving, stride, size=5)


IMAGES = {"takes": Signal.IMAGE, "emits": Signal.IMAGE}
BLOCK = {"takes_units": True, "strides": (1, 2), "group": "conv", **IMAGES}
HERE = __name__
LABELS = (
    Label(name="ip", role=Role.INPUT, emits=Signal.IMAGE, family="end"),
    Label(name="conv3", family="conv", kernel_size=3, activation="relu", **BLOCK),
    Label(name="sep3", family="sep", module=f"{HERE}:Separable", **BLOCK),
    Label(name="mb3", family="mb", mass_factor=2.0 * EXPANSION, module=f"{HERE}:InvertedResidual", **BLOCK),
    Label(name="mb5", family="mb", mass_factor=2.0 * EXPANSION, module=f"{HERE}:InvertedResidual5", **BLOCK),
    Label(
        name="avg-pool", shrinks=2, may_follow_input=False, family="pool", pooling="average", joins_skips=True, **IMAGES
    ),
    Label(name="softmax", role=Role.DECISION, takes=Signal.ANY, may_follow_input=False, activation="softmax"),
    Label(name="op", role=Role.OUTPUT, family="end"),
)
PENALTIES = LabelPenalties.from_pairs(
    [label.name for label in LABELS],
    {("mb3", "mb5"): 0.2, ("conv3", "sep3"): 0.3, ("sep3", "mb3"): 0.4, ("sep3", "mb5"): 0.4}
    | {("conv3", "mb3"): 0.5, ("conv3", "mb5"): 0.5},
)
MOBILE = Vocabulary("mobilenet", LABELS, PENALTIES)


def mobilenet(block, *widths):
    """A convolution, then blocks of these widths, of which every second one halves the image."""
    blocks = [Layer(block, units, 1 + i % 2) for i, units in enumerate(widths)]
    return chain(MOBILE, [Layer("conv3", 16, 1), *blocks])


POOL = [mobilenet("sep3", 32, 32, 64), mobilenet("mb3", 16, 24, 24, 32), mobilenet("mb5", 16, 24)]
