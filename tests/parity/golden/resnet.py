"""torchvision's ResNets: initialisation, logits, gradients, running statistics, state. Families resnet_init, resnet_eval,
resnet_train."""
import unittest.mock

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision.models import resnet

from golden import common
from golden.common import bits, fill_weights, unit

SAMPLE, INIT_SEED, IMAGES, GAIN = 8, 7, 2, 2.0
MODELS = {
    "resnet18": dict(name="resnet18", stem="imagenet", classes=1000, height=64, width=64),
    "resnet34": dict(name="resnet34", stem="imagenet", classes=1000, height=64, width=64),
    "resnet50": dict(name="resnet50", stem="imagenet", classes=1000, height=64, width=64),
    "resnet18_cifar": dict(name="resnet18", stem="cifar", classes=10, height=32, width=32),
}


class StemConv(nn.Conv2d):
    """A convolution whose 7x7 form is a 3x3 one with stride 1 and padding 1."""

    def __init__(self, inputs, outputs, kernel_size, stride=1, padding=0, **others):
        if kernel_size == 7:
            kernel_size, stride, padding = 3, 1, 1
        super().__init__(inputs, outputs, kernel_size, stride, padding, **others)


def build(spec):
    """The CIFAR stem is conv1 of 3x3, stride 1, padding 1 and no max pooling. It is drawn where torchvision draws its own,
    so that the random numbers keep their order, and like every convolution (normal, fan out, ReLU)."""
    if spec["stem"] == "imagenet":
        return getattr(resnet, spec["name"])(num_classes=spec["classes"])
    with unittest.mock.patch.object(nn, "Conv2d", StemConv):
        model = getattr(resnet, spec["name"])(num_classes=spec["classes"])
    model.maxpool = nn.Identity()
    return model


def filled(spec):
    """Weights as in common.fill_weights; of the floating-point buffers, number k comes from stream 2000 + k: running means
    as u / 8, running variances as 1 + u / 4."""
    model = build(spec).double()
    fill_weights(model, GAIN)
    buffers = [(name, b) for name, b in model.named_buffers() if b.is_floating_point()]
    for k, (name, b) in enumerate(buffers):
        u = torch.from_numpy(unit(2000 + k, b.numel()))
        b.copy_(1.0 + 0.25 * u if name.endswith("running_var") else 0.125 * u)
    return model


def batch(spec):
    shape = (IMAGES, 3, spec["height"], spec["width"])
    images = common.centred(bits(5, int(np.prod(shape))) % np.uint64(256)).reshape(shape)
    labels = (bits(6, IMAGES) % np.uint64(spec["classes"])).astype(np.int64)
    return torch.from_numpy(images), torch.from_numpy(labels)


def sampled(tensor):
    return common.sampled(tensor, SAMPLE)


def goldens(key, spec):
    torch.manual_seed(INIT_SEED)
    golden = {f"resnet_init/{key}/{n}": sampled(p) for n, p in build(spec).named_parameters()}
    model, (images, labels) = filled(spec), batch(spec)
    with torch.no_grad():
        golden[f"resnet_eval/{key}/logits"] = model.eval()(images).numpy()
    logits = model.train()(images)
    loss = F.cross_entropy(logits, labels)
    loss.backward()
    golden[f"resnet_train/{key}/logits"] = logits.detach().numpy()
    golden[f"resnet_train/{key}/loss"] = np.array([loss.item()])
    golden.update({f"resnet_train/{key}/gradient/{n}": sampled(p.grad) for n, p in model.named_parameters()})
    golden.update({f"resnet_train/{key}/buffer/{n}": sampled(b) for n, b in model.named_buffers()})
    return golden


def compute():
    golden, models = {}, {}
    for key, spec in MODELS.items():
        golden.update(goldens(key, spec))
        model = build(spec)
        models[key] = dict(spec, parameters=sum(p.numel() for p in model.parameters()),
                           state=[[n, list(t.shape)] for n, t in model.state_dict().items()])
    return golden, {"sample": SAMPLE, "init_seed": INIT_SEED, "images": IMAGES, "gain": GAIN, "models": models}
