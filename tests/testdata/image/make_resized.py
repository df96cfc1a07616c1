#!/usr/bin/env python3
"""Makes what torchvision v2 makes of regions of ../pictures/photo.rgb.png: resize(antialias=True) of uint8 tensors, as
resized_<left>_<top>_<width>_<height>_to_<width>_<height>_<filter>.png.

Run with torchvision 0.26 and Pillow, here:  ./make_resized.py
"""
import pathlib

import torchvision
from PIL import Image
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as F

FOLDER = pathlib.Path(__file__).parent
# (left, top, width, height), (width, height)
CASES = [((0, 0, 43, 29), (21, 14)), ((0, 0, 43, 29), (56, 40)), ((5, 3, 31, 20), (16, 24)), ((7, 0, 1, 29), (5, 9)),
         ((40, 26, 3, 3), (12, 12)), ((0, 0, 43, 29), (3, 2)), ((10, 5, 30, 24), (1, 1)), ((2, 2, 24, 24), (24, 11))]


def main():
    assert torchvision.__version__.startswith("0.26"), "another torchvision may round otherwise"
    photo = F.pil_to_tensor(Image.open(FOLDER.parent / "pictures" / "photo.rgb.png").convert("RGB"))
    for (left, top, width, height), (to_width, to_height) in CASES:
        for mode in (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC):
            region = F.crop(photo, top, left, height, width)
            resized = F.resize(region, [to_height, to_width], interpolation=mode, antialias=True)
            name = f"resized_{left}_{top}_{width}_{height}_to_{to_width}_{to_height}_{mode.value}.png"
            F.to_pil_image(resized).save(FOLDER / name, optimize=True)


if __name__ == "__main__":
    main()
