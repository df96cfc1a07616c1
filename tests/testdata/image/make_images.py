#!/usr/bin/env python3
"""Makes what torchvision v2 makes of ../pictures/photo.rgb.png, as uint8 tensors:

resized_<left>_<top>_<width>_<height>_to_<width>_<height>_<filter>.png   resize(antialias=True) of a region
augmented_<operation>_<parameter>.png                                    of the whole
magnitudes.txt       RandAugment's, for 31 bins and a picture of 224 x 160: operation and values

Run with torchvision 0.26 and Pillow, here:  ./make_images.py
"""
import pathlib

import torchvision
from PIL import Image
from torchvision.transforms import v2
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2 import functional as F

FOLDER = pathlib.Path(__file__).parent
# (left, top, width, height), (width, height)
CASES = [((0, 0, 43, 29), (21, 14)), ((0, 0, 43, 29), (56, 40)), ((5, 3, 31, 20), (16, 24)), ((7, 0, 1, 29), (5, 9)),
         ((40, 26, 3, 3), (12, 12)), ((0, 0, 43, 29), (3, 2)), ((10, 5, 30, 24), (1, 1)), ((2, 2, 24, 24), (24, 11))]
PARAMETERS = {
    "Brightness": [-0.27, 0.9], "Contrast": [-0.9, 0.6], "Color": [-0.9, 0.27], "Sharpness": [-0.9, 0.9],
    "Hue": [-0.5, -0.1, 0.05, 0.3], "Posterize": [3, 7], "Solarize": [0.3, 0.7], "AutoContrast": [0], "Equalize": [0],
    "ShearX": [-0.3, 0.09], "ShearY": [-0.21, 0.3], "TranslateX": [-7.9, 5.2], "TranslateY": [-3, 11.7],
    "Rotate": [-27, 9],
}


def save(image, name):
    F.to_pil_image(image).save(FOLDER / name, optimize=True)


def main():
    assert torchvision.__version__.startswith("0.26"), "another torchvision may round otherwise"
    photo = F.pil_to_tensor(Image.open(FOLDER.parent / "pictures" / "photo.rgb.png").convert("RGB"))
    for (left, top, width, height), (to_width, to_height) in CASES:
        for mode in (InterpolationMode.BILINEAR, InterpolationMode.BICUBIC):
            region = F.crop(photo, top, left, height, width)
            save(F.resize(region, [to_height, to_width], interpolation=mode, antialias=True),
                 f"resized_{left}_{top}_{width}_{height}_to_{to_width}_{to_height}_{mode.value}.png")
    augment = v2.RandAugment()
    for operation, parameters in PARAMETERS.items():
        for parameter in parameters:
            if operation == "Hue":
                changed = F.adjust_hue(photo, parameter)
            else:
                changed = augment._apply_image_or_video_transform(photo, operation, parameter, augment.interpolation,
                                                                  augment._fill)
            save(changed, f"augmented_{operation}_{parameter}.png")
    with open(FOLDER / "magnitudes.txt", "w") as file:
        for operation, (magnitudes, _) in augment._AUGMENTATION_SPACE.items():
            values = magnitudes(31, 160, 224)
            print(operation, *([] if values is None else [float(v) for v in values]), file=file)


if __name__ == "__main__":
    main()
