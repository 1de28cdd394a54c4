"""A vocabulary of small vision transformers: patches, attention between them, and the MLP behind it.

    nasbot run images.npz --vocabulary examples.vision_transformers:VIT --pool examples.vision_transformers:POOL

A patch is a pixel of a smaller image, so all layers take and give (n, channels, height, width), and images of any size
come in. Positions are told by a depthwise convolution behind each embedding, since its layers never see the image size
before the first batch.
"""

from torch import nn
from torch.nn import functional

from nasbot import Label, LabelPenalties, Layer, Role, Signal, Vocabulary
from nasbot.architecture import chain

HEAD_WIDTH = 16
EXPANSION = 2


class Patches(nn.Module):
    """Each patch of ``stride`` x ``stride`` pixels becomes one; what stands around it tells where it is."""

    def __init__(self, entering, leaving, stride):
        super().__init__()
        self.stride = stride
        self.embed = nn.Conv2d(entering, leaving, stride, stride=stride)
        self.position = nn.Conv2d(leaving, leaving, 7, padding=3, groups=leaving)

    def forward(self, x):
        height, width = x.shape[-2:]
        x = self.embed(functional.pad(x, (0, -width % self.stride, 0, -height % self.stride)))
        return x + self.position(x)


class Attention(nn.Module):
    """x + attention of the normalised x to itself; x goes through weights of its own where the width changes."""

    def __init__(self, entering, leaving):
        super().__init__()
        self.n_heads = max(1, leaving // HEAD_WIDTH)
        while leaving % self.n_heads:
            self.n_heads -= 1
        self.norm = nn.LayerNorm(entering)
        self.queries_keys_values = nn.Linear(entering, 3 * leaving)
        self.out = nn.Linear(leaving, leaving)
        self.shortcut = nn.Identity() if entering == leaving else nn.Linear(entering, leaving)

    def forward(self, x):
        n, _, height, width = x.shape
        tokens = x.flatten(2).transpose(1, 2)
        parts = self.queries_keys_values(self.norm(tokens)).chunk(3, dim=2)
        heads = [part.unflatten(2, (self.n_heads, -1)).transpose(1, 2) for part in parts]
        attended = functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
        return (self.shortcut(tokens) + self.out(attended)).transpose(1, 2).reshape(n, -1, height, width)


class FeedForward(nn.Module):
    """x + Linear, GELU, Linear of the normalised x, for each patch alone."""

    def __init__(self, entering, leaving):
        super().__init__()
        self.norm = nn.GroupNorm(1, entering)
        self.wide = nn.Conv2d(entering, EXPANSION * leaving, 1)
        self.out = nn.Conv2d(EXPANSION * leaving, leaving, 1)
        self.shortcut = nn.Identity() if entering == leaving else nn.Conv2d(entering, leaving, 1)

    def forward(self, x):
        return self.shortcut(x) + self.out(functional.gelu(self.wide(self.norm(x))))


IMAGES = {"takes": Signal.IMAGE, "emits": Signal.IMAGE}
HERE = __name__
LABELS = (
    Label(name="ip", role=Role.INPUT, emits=Signal.IMAGE, family="end"),
    Label(
        name="patch2", takes_units=True, shrinks=2, family="patch", mass_factor=4.0, module=f"{HERE}:Patches", **IMAGES
    ),
    Label(
        name="patch4",
        takes_units=True,
        shrinks=4,
        family="patch",
        mass_factor=16.0,
        module=f"{HERE}:Patches",
        **IMAGES,
    ),
    Label(
        name="attention",
        takes_units=True,
        may_follow_input=False,
        family="attention",
        group="attention",
        mass_factor=4.0,  # queries, keys, values and the way out: four dense layers
        module=f"{HERE}:Attention",
        **IMAGES,
    ),
    Label(
        name="mlp",
        takes_units=True,
        may_follow_input=False,
        family="mlp",
        group="mlp",
        mass_factor=2.0 * EXPANSION,
        module=f"{HERE}:FeedForward",
        **IMAGES,
    ),
    Label(name="softmax", role=Role.DECISION, takes=Signal.ANY, may_follow_input=False, activation="softmax"),
    Label(name="op", role=Role.OUTPUT, family="end"),
)
PENALTIES = LabelPenalties.from_pairs(
    [label.name for label in LABELS], {("patch2", "patch4"): 0.2, ("attention", "mlp"): 0.6}
)
VIT = Vocabulary("vision-transformer", LABELS, PENALTIES)


def transformer(patch, units, depth):
    """Patches, ``depth`` blocks of attention and MLP of one width, and the average of all patches to decide by."""
    return chain(VIT, [Layer(patch, units), *[Layer("attention", units), Layer("mlp", units)] * depth])


POOL = [transformer("patch4", 32, 1), transformer("patch4", 32, 2), transformer("patch2", 24, 1)]
