"""The small models, as a Python user writes them."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class SimpleCNN(nn.Module):
    def __init__(self, channels, height, width, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 32, 3)
        self.fc1 = nn.Linear(32 * (height - 2) * (width - 2), classes)

    def forward(self, x):
        return self.fc1(torch.flatten(F.relu(self.conv1(x)), 1))


class Mlp(nn.Module):
    def __init__(self, channels, height, width, classes, hidden):
        super().__init__()
        widths = [channels * height * width, *hidden, classes]
        self.layers = [f"fc{i + 1}" for i in range(len(widths) - 1)]
        for name, a, b in zip(self.layers, widths, widths[1:]):
            setattr(self, name, nn.Linear(a, b))

    def forward(self, x):
        x = torch.flatten(x, 1)
        for name in self.layers[:-1]:
            x = F.relu(getattr(self, name)(x))
        return getattr(self, self.layers[-1])(x)


class NormedMlp(nn.Module):
    """Two hidden layers, with a layer norm between the first one and its activation."""

    def __init__(self, channels, height, width, classes, hidden):
        super().__init__()
        self.fc1 = nn.Linear(channels * height * width, hidden[0])
        self.norm1 = nn.LayerNorm(hidden[0])
        self.fc2 = nn.Linear(hidden[0], hidden[1])
        self.fc3 = nn.Linear(hidden[1], classes)

    def forward(self, x):
        x = F.relu(self.norm1(self.fc1(torch.flatten(x, 1))))
        return self.fc3(F.relu(self.fc2(x)))


class ConvNet(nn.Module):
    def __init__(self, channels, height, width, classes, width_of_first_block):
        super().__init__()
        w = width_of_first_block
        for i, (a, b) in enumerate(((channels, w), (w, w), (w, 2 * w), (2 * w, 2 * w)), 1):
            setattr(self, f"conv{i}", nn.Conv2d(a, b, 3, padding=1, bias=False))
            setattr(self, f"bn{i}", nn.BatchNorm2d(b))
        self.fc = nn.Linear(2 * w * (height // 4) * (width // 4), classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        x = F.relu(self.bn3(self.conv3(x)))
        x = F.max_pool2d(F.relu(self.bn4(self.conv4(x))), 2)
        return self.fc(torch.flatten(x, 1))


CLASSES = {"simplecnn": SimpleCNN, "mlp": Mlp, "normed_mlp": NormedMlp, "convnet": ConvNet}
