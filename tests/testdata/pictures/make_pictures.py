#!/usr/bin/env python3
"""Makes the pictures of this folder and what Pillow makes of them: NAME.jpg or NAME.png and the RGB that it decodes to,
NAME.rgb.png; and photo.jpg resized and cropped as torchvision does, resized_<resize>_<size>.png.

Run with Pillow 9.4 (Debian 12: apt install python3-pil), here:  ./make_pictures.py
"""
import math
import pathlib
import random

import PIL
from PIL import Image

FOLDER = pathlib.Path(__file__).parent
CROPS = [(24, 24), (24, 16), (29, 29), (29, 8), (80, 64), (5, 3), (1, 1)]  # (resize, size)


def photo(width, height, mode="RGB"):
    """Smooth, with edges and noise."""
    draw = random.Random(f"{width} {height} {mode}")
    image = Image.new(mode, (width, height))
    channels = len(image.getbands())
    for y in range(height):
        for x in range(width):
            value = []
            for c in range(channels):
                wave = 128 + 70 * math.sin(x / (3 + c) + c) + 50 * math.cos(y / (4 + c))
                edge = 60 if (x + 2 * y) % 23 < 9 else 0
                value.append(max(0, min(255, int(wave + edge - 30 + draw.randint(-12, 12)))))
            image.putpixel((x, y), tuple(value) if channels > 1 else value[0])
    return image


def save(name, image, **how):
    path = FOLDER / name
    image.save(path, **how)
    with Image.open(path) as read:
        read.convert("RGB").save(path.with_suffix(".rgb.png"), optimize=True)


def resized(image, resize, size):
    """torchvision.transforms: Resize(resize), CenterCrop(size)."""
    width, height = image.size
    short, long = min(width, height), max(width, height)
    scaled = int(resize * long / short)
    new = (resize, scaled) if width <= height else (scaled, resize)
    if new != (width, height):
        image = image.resize(new, Image.BILINEAR)
    top, left = int(round((new[1] - size) / 2.0)), int(round((new[0] - size) / 2.0))
    return image.crop((left, top, left + size, top + size))


def main():
    assert PIL.__version__.startswith("9.4"), "another Pillow may round otherwise"
    save("photo.jpg", photo(43, 29), quality=90)  # 4:2:0
    save("progressive.jpg", photo(29, 43), quality=80, progressive=True, subsampling="4:2:2")
    save("grey.jpg", photo(17, 31, "L"), quality=90)
    save("cmyk.jpg", photo(19, 16, "CMYK"), quality=95)
    save("rgba.png", photo(9, 8, "RGBA"))
    save("grey_alpha.png", photo(8, 9, "LA"))
    palette = photo(11, 10).quantize(16)
    save("palette.png", palette, bits=4, transparency=bytes(range(0, 256, 16)))
    for resize, size in CROPS:
        for name, turned in (("wide", False), ("tall", True)):
            with Image.open(FOLDER / "photo.rgb.png") as image:
                image = image.transpose(Image.TRANSPOSE) if turned else image
                resized(image, resize, size).save(FOLDER / f"resized_{name}_{resize}_{size}.png", optimize=True)


if __name__ == "__main__":
    main()
