"""What all goldens share: the hash that weights and pictures come from, sampling, and the files themselves.

Streams of the hash: 1 labels, 2 prototypes, 3 noise, 4 random labels (steps.py, train.py); 5 pictures, 6 labels (resnet.py);
7 targets (train.py); 8 logits, 9 labels (losses.py); 10 metrics (schedules.py); 11 overflows (scaler.py); 1000 + k
parameter k, 2000 + k floating-point buffer k.
"""
import functools
import json
import math
import os
import sys

import numpy as np
import torch
from safetensors import safe_open
from safetensors.numpy import save_file

BATCH = 8
# Quarters of a picture that are its class's (the rest is noise), by channels: the more parameters, the less.
SIGNAL_QUARTERS = {1: 1, 2: 3, 3: 3}


def splitmix64(x):
    with np.errstate(over="ignore"):
        z = x + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def bits(stream, count, begin=0):
    """`count` 64-bit words of stream number `stream`, from word `begin` on."""
    return splitmix64(np.uint64(stream) * np.uint64(1 << 32) + np.arange(begin, begin + count, dtype=np.uint64))


def unit(stream, count, begin=0):
    """float64 in [-1, 1), multiples of 2**-52."""
    return (bits(stream, count, begin) >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0


def centred(byte):
    """Pixels of bytes: (byte - 128) / 128, exact in fp32 and fp64."""
    return (byte.astype(np.float64) - 128.0) / 128.0


def fill_weights(model, gain=1.0):
    """Parameter number k is drawn from stream 1000 + k: matrices and convolutions as gain * u / sqrt(fan in), the bias that
    follows one as u / sqrt(fan in); the weight of a norm (the only weights of one dimension) as 1 + u / 4, its bias as
    u / 8. Buffers are left alone."""
    fan, norm = 1, False
    with torch.no_grad():
        for k, (name, p) in enumerate(model.named_parameters()):
            u = unit(1000 + k, p.numel()).reshape(p.shape)
            if name.endswith("weight"):
                norm = p.dim() == 1
                if not norm:
                    fan = int(np.prod(p.shape[1:]))
            if norm:
                value = 1.0 + 0.25 * u if name.endswith("weight") else 0.125 * u
            else:
                value = u * ((gain if p.dim() > 1 else 1.0) / math.sqrt(fan))
            p.copy_(torch.from_numpy(value))


@functools.lru_cache(maxsize=2048)
def batch(step, channels, height, width, classes, dtype):
    """Batch of step `step`: a picture of its class plus noise, as bytes; one label in four is random, so that the loss
    stays well above zero and no gradient dies out."""
    signal = SIGNAL_QUARTERS[channels]
    pixels, first = channels * height * width, step * BATCH
    labels = (bits(1, BATCH, first) % np.uint64(classes)).astype(np.int64)
    drawn = bits(4, BATCH, first)
    given = np.where(drawn % np.uint64(4) == 0, (drawn >> np.uint64(32)) % np.uint64(classes),
                     labels.astype(np.uint64)).astype(np.int64)
    prototypes = (bits(2, classes * pixels) % np.uint64(256)).reshape(classes, pixels)
    noise = (bits(3, BATCH * pixels, first * pixels) % np.uint64(256)).reshape(BATCH, pixels)
    byte = (prototypes[labels] * np.uint64(signal) + noise * np.uint64(4 - signal)) // np.uint64(4)
    images = torch.from_numpy(centred(byte)).to(dtype).reshape(BATCH, channels, height, width)
    return images, torch.from_numpy(given)


def sampled(tensor, most):
    """[sum / sqrt(count), 2-norm, every stride-th element]: at most `most` elements."""
    flat = tensor.detach().double().flatten().numpy()
    stride = max(1, -(-flat.size // most))
    return np.concatenate([[math.fsum(flat) / math.sqrt(flat.size), math.sqrt(math.fsum(flat * flat))], flat[::stride]])


def save(path, golden, cases):
    arrays = {key: np.ascontiguousarray(value, dtype=np.float64) for key, value in golden.items()}
    save_file(arrays, path, {"torch": torch.__version__, "cases": json.dumps(cases)})
    print(f"{path}: {len(arrays)} arrays, {os.path.getsize(path):,} bytes")


def compare(path, golden, cases, limits):
    """Whether the file says the same; prints the largest difference of each family. limits: by family, the part of a key
    before the first slash; of values beyond 1, the difference is relative."""
    worst, good = {}, True
    with safe_open(path, "np") as old:
        if set(old.keys()) != set(golden) or json.loads(old.metadata()["cases"]) != json.loads(json.dumps(cases)):
            print(f"{path}: other cases than this script makes", file=sys.stderr)
            return False
        for key, value in golden.items():
            family, was = key.split("/")[0], old.get_tensor(key)
            difference = np.abs(value - was) / np.maximum(1.0, np.abs(was))
            difference = difference.max() if np.isfinite(difference).all() else math.inf
            if difference >= worst.get(family, (0, ""))[0]:
                worst[family] = (difference, key)
    for family, (difference, key) in sorted(worst.items()):
        good &= bool(difference <= limits[family])
        print(f"{family:12} largest difference {difference:.3g} (limit {limits[family]:g}) at {key}")
    return good


def mean_by_samples(buffers, slots):
    """Of what each slot (its pictures) made of a buffer."""
    return sum(b * len(x) for b, x in zip(buffers, slots)) / sum(len(x) for x in slots)
