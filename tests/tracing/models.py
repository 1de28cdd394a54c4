"""PyTorch models as people write them, for the tests of tracing. Narrow versions keep their shape and cost little."""

import torch
from torch import nn
from torch.nn import functional as F


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut, which is a 1x1 convolution where the shape changes."""

    def __init__(self, entering, units, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(entering, units, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(units)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(units, units, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(units)
        self.downsample = None
        if stride != 1 or entering != units:
            self.downsample = nn.Sequential(nn.Conv2d(entering, units, 1, stride=stride), nn.BatchNorm2d(units))

    def forward(self, x):
        shortcut = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += shortcut
        return self.relu(out)


class Bottleneck(nn.Module):
    def __init__(self, entering, units, stride):
        super().__init__()
        narrow = units // 4
        self.conv1 = nn.Conv2d(entering, narrow, 1)
        self.conv2 = nn.Conv2d(narrow, narrow, 3, stride=stride, padding=1)
        self.conv3 = nn.Conv2d(narrow, units, 1)
        self.shortcut = nn.Conv2d(entering, units, 1, stride=stride)

    def forward(self, x):
        out = self.conv3(F.relu(self.conv2(F.relu(self.conv1(x)))))
        return F.relu(out + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, blocks=(2, 2, 2, 2), *, block=BasicBlock, width=64, n_classes=1000):
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        stages, entering = [], width
        for i, n_blocks in enumerate(blocks):
            units = width * 2**i
            for j in range(n_blocks):
                stages.append(block(entering, units, 2 if i and not j else 1))
                entering = units
        self.stages = nn.Sequential(*stages)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(entering, n_classes)

    def forward(self, x):
        x = self.maxpool(F.relu(self.bn1(self.conv1(x))))
        x = torch.flatten(self.avgpool(self.stages(x)), 1)
        return self.fc(x)


VGG = {
    11: (64, "M", 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"),
    13: (64, 64, "M", 128, 128, "M", 256, 256, "M", 512, 512, "M", 512, 512, "M"),
}


def vgg(depth, *, n_classes=1000, dense=4096):
    layers, entering = [], 3
    for units in VGG[depth]:
        if units == "M":
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(entering, units, 3, padding=1), nn.BatchNorm2d(units), nn.ReLU(True)]
            entering = units
    head = [
        *(nn.AdaptiveAvgPool2d((7, 7)), nn.Flatten(), nn.Linear(512 * 49, dense), nn.ReLU(True), nn.Dropout()),
        *(nn.Linear(dense, dense), nn.ReLU(True), nn.Dropout(), nn.Linear(dense, n_classes)),
    ]
    return nn.Sequential(*layers, *head)


class DenseNetLike(nn.Module):
    """Every layer of a block takes all the layers before it; 3x3 convolutions only."""

    def __init__(self, growth=12, n_layers=3):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.block1 = nn.ModuleList([self._layer(16 + i * growth, growth) for i in range(n_layers)])
        channels = 16 + n_layers * growth
        self.transition = nn.Sequential(nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, 24, 3, padding=1))
        self.pool = nn.AvgPool2d(2)
        self.block2 = nn.ModuleList([self._layer(24 + i * growth, growth) for i in range(n_layers)])
        self.norm = nn.BatchNorm2d(24 + n_layers * growth)
        self.classifier = nn.Linear(24 + n_layers * growth, 10)

    @staticmethod
    def _layer(entering, growth):
        return nn.Sequential(
            nn.BatchNorm2d(entering), nn.ReLU(), nn.Conv2d(entering, growth, 3, padding=1), nn.Dropout(0.2)
        )

    @staticmethod
    def _dense(block, x):
        features = [x]
        for layer in block:
            features.append(layer(torch.cat(features, 1)))
        return torch.cat(features, 1)

    def forward(self, x):
        x = self._dense(self.block1, self.stem(x))
        x = self._dense(self.block2, self.pool(self.transition(x)))
        x = F.adaptive_avg_pool2d(F.relu(self.norm(x)), (1, 1))
        return self.classifier(x.view(x.size(0), -1))


class InceptionLike(nn.Module):
    """Branches of 3x3, 5x5 and 7x7 convolutions side by side, twice; with ``reduce`` also the usual 1x1 and pool."""

    def __init__(self, *, reduce=False):
        super().__init__()
        self.reduce = reduce
        self.stem = nn.Conv2d(3, 32, 7, stride=2, padding=3)
        self.three = nn.ModuleList([nn.Conv2d(n, 16, 3, padding=1) for n in (32, 56 if reduce else 48)])
        self.five = nn.ModuleList([nn.Conv2d(n, 16, 5, padding=2) for n in (32, 56 if reduce else 48)])
        self.seven = nn.ModuleList([nn.Conv2d(n, 16, 7, padding=3) for n in (32, 56 if reduce else 48)])
        self.one = nn.ModuleList([nn.Conv2d(n, 8, 1) for n in (32, 56)] if reduce else [])
        self.fc = nn.Linear(56 if reduce else 48, 10)

    def forward(self, x):
        x = F.max_pool2d(self.stem(x).relu(), 3, stride=2, padding=1)
        for i in range(2):
            branches = [F.relu(convolutions[i](x)) for convolutions in (self.three, self.five, self.seven)]
            if self.reduce:
                branches.append(self.one[i](F.max_pool2d(x, 3, stride=1, padding=1)))
            x = torch.cat(branches, dim=1)
        return F.log_softmax(self.fc(x.mean([2, 3])), dim=1)


def narrow(arch, most=24):
    """The same network with layers of at most so many units: the same code runs, and costs little."""
    return arch.with_units({u: min(most, layer.units) for u, layer in enumerate(arch.layers) if layer.units})


class InvertedResidual(nn.Module):
    """MobileNetV2's block: widen, a filter for each channel, narrow; added to its input where the shapes agree."""

    def __init__(self, entering, units, stride, expansion):
        super().__init__()
        wide = entering * expansion
        self.is_residual = stride == 1 and entering == units
        widen = [nn.Conv2d(entering, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(inplace=True)]
        self.conv = nn.Sequential(
            *(widen if expansion > 1 else []),
            nn.Conv2d(wide, wide, 3, stride=stride, padding=1, groups=wide, bias=False),
            nn.BatchNorm2d(wide),
            nn.ReLU6(inplace=True),
            nn.Conv2d(wide, units, 1, bias=False),
            nn.BatchNorm2d(units),
        )

    def forward(self, x):
        return x + self.conv(x) if self.is_residual else self.conv(x)


class MobileNetV2(nn.Module):
    STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))

    def __init__(self, n_classes=1000):
        super().__init__()
        layers, entering = [nn.Conv2d(3, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU6()], 32
        for expansion, units, n, stride in self.STAGES:
            for i in range(n):
                layers.append(InvertedResidual(entering, units, stride if i == 0 else 1, expansion))
                entering = units
        layers += [nn.Conv2d(entering, 1280, 1), nn.BatchNorm2d(1280), nn.ReLU6()]
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, n_classes))

    def forward(self, x):
        x = F.adaptive_avg_pool2d(self.features(x), (1, 1))
        return self.classifier(torch.flatten(x, 1))


class ConvNeXtBlock(nn.Module):
    """A filter of 7x7 for each channel, two 1x1 convolutions, and a scale for each channel before the addition."""

    def __init__(self, units):
        super().__init__()
        self.depthwise = nn.Conv2d(units, units, 7, padding=3, groups=units)
        self.norm = nn.GroupNorm(1, units)
        self.widen, self.narrow = nn.Conv2d(units, 4 * units, 1), nn.Conv2d(4 * units, units, 1)
        self.scale = nn.Parameter(torch.full((units, 1, 1), 1e-6))

    def forward(self, x):
        return x + self.scale * self.narrow(F.gelu(self.widen(self.norm(self.depthwise(x)))))


def convnext(*, units=(16, 32), blocks=(2, 1), n_classes=10):
    layers = [nn.Conv2d(3, units[0], 4, stride=4), nn.GroupNorm(1, units[0])]
    for i, n in enumerate(blocks):
        if i:
            layers += [nn.GroupNorm(1, units[i - 1]), nn.Conv2d(units[i - 1], units[i], 2, stride=2)]
        layers += [ConvNeXtBlock(units[i]) for _ in range(n)]
    return nn.Sequential(
        *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(units[-1]), nn.Linear(units[-1], n_classes)
    )


class UNet(nn.Module):
    """Down, up again, and a concatenation across; gives an image."""

    def __init__(self):
        super().__init__()
        self.down, self.pool = nn.Conv2d(3, 8, 3, padding=1), nn.MaxPool2d(2)
        self.bottom, self.up = nn.Conv2d(8, 16, 3, padding=1), nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.last = nn.Conv2d(16, 2, 3, padding=1)

    def forward(self, x):
        across = F.relu(self.down(x))
        return self.last(torch.cat([across, self.up(F.relu(self.bottom(self.pool(across))))], dim=1))


class VisionTransformer(nn.Module):
    """Patches as tokens, one encoder layer written out, the mean of the tokens to decide by."""

    def __init__(self, units=16):
        super().__init__()
        self.patches = nn.Conv2d(3, units, 4, stride=4)
        self.norm, self.attention = nn.LayerNorm(units), nn.MultiheadAttention(units, 2, batch_first=True)
        self.head = nn.Linear(units, 10)

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        y = self.norm(tokens)
        tokens = tokens + self.attention(y, y, y, need_weights=False)[0]
        return self.head(tokens.mean(dim=1))
