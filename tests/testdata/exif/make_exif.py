#!/usr/bin/env python3
"""Makes pictures that are stored sideways, and what Pillow's ImageOps.exif_transpose and torchvision make of them:

stored_<orientation>.jpg     a part of ../pictures/photo.rgb.png; Exif in both byte orders, 3 as Pillow writes it
stored_6.png, stored_8.png   the same with an eXIf chunk, before and after the pixels
upright_<orientation>.png    turned upright
region_<orientation>.png     of that, the region (5, 3, 14, 17), resized to 12 x 9 by torchvision v2, as a uint8 tensor
centre_<orientation>.png     of that, Resize(14) and CenterCrop(9)
exif.txt                     Exif segments, many of them damaged, as hex, and the orientation that Pillow reads

Run with torchvision 0.26 and Pillow 13, here:  ./make_exif.py
"""
import io
import pathlib
import struct
import warnings
import zlib

import torchvision
from PIL import Image, ImageOps
from torchvision.transforms.v2 import functional as F

FOLDER = pathlib.Path(__file__).parent
ORIENTATION = 0x0112


def exif(entries, order="<", offset=8, magic=42, count=None):
    """entries: (tag, type, count, 4 bytes or a number to pack as a SHORT)."""
    body = struct.pack(order + "H", len(entries) if count is None else count)
    for tag, kind, n, value in entries:
        value = value if isinstance(value, bytes) else struct.pack(order + "HH", value, 0)
        body += struct.pack(order + "HHI", tag, kind, n) + value
    return (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", magic, offset) + body + bytes(4)


def simple(value, order="<"):
    return exif([(0x010F, 2, 4, b"abc\0"), (ORIENTATION, 3, 1, value)], order)


def orientation_by_pillow(segment):
    out = io.BytesIO()
    Image.new("RGB", (8, 8)).save(out, "JPEG", exif=b"Exif\0\0" + segment)
    out.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            value = Image.open(out).getexif().get(ORIENTATION, 1)
        except Exception:  # pylint: disable=broad-except
            return 1
    return value if value in range(1, 9) else 1


def segments():
    good, big = simple(6), simple(6, ">")
    yield from (simple(value) for value in range(0, 10))
    yield from (simple(value, ">") for value in (1, 6, 8, 9, 65535))
    yield from (good[:n] for n in (0, 1, 4, 7, 8, 9, 10, 21, 22, 30, 33, 34, 35))
    yield from (big[:n] for n in (2, 8, 10, 33, 34))
    yield exif([(ORIENTATION, 4, 1, struct.pack("<I", 8))])
    yield exif([(ORIENTATION, 4, 1, struct.pack(">I", 8))], ">")
    yield exif([(ORIENTATION, 4, 1, struct.pack("<I", 65536 + 6))])
    yield exif([(ORIENTATION, 8, 1, 5)])
    yield exif([(ORIENTATION, 9, 1, struct.pack("<i", 7))])
    yield exif([(ORIENTATION, 1, 1, b"\6\0\0\0")])
    yield exif([(ORIENTATION, 2, 2, b"6\0\0\0")])
    yield exif([(ORIENTATION, 3, 2, 6)])
    yield exif([(ORIENTATION, 3, 0, 6)])
    yield exif([(ORIENTATION, 200, 1, 6)])
    yield exif([(ORIENTATION, 3, 1, 6), (ORIENTATION, 3, 1, 3)])
    yield exif([(ORIENTATION, 3, 1, 6), (ORIENTATION, 3, 2, 3)])
    yield exif([(ORIENTATION, 3, 1, 6)], count=500)
    yield exif([(ORIENTATION, 3, 1, 6)], count=0)
    yield exif([(ORIENTATION, 3, 1, 6)], offset=9)
    yield exif([(ORIENTATION, 3, 1, 6)], offset=0xFFFFFFFF)
    yield exif([(ORIENTATION, 3, 1, 6)], offset=0)
    yield exif([(ORIENTATION, 3, 1, 6)], magic=41)
    yield b"II" + good[2:4][::-1] + good[4:]
    yield b"JJ" + good[2:]
    for first in ((ORIENTATION, 3, 2, 3), (ORIENTATION, 1, 1, b"\3\0\0\0"), (ORIENTATION, 200, 1, 3), (ORIENTATION, 3, 0, 3),
                  (ORIENTATION, 3, 3, 3), (ORIENTATION, 3, 3, 9999), (ORIENTATION, 3, 1, 9), (0x010F, 2, 5, b"\xff\0\0\0"),
                  (0x010F, 2, 5, b"\1\0\0\0"), (0x010F, 2, 5000, b"\1\0\0\0"), (0x010F, 12, 1 << 29, b"\1\0\0\0")):
        yield exif([first, (ORIENTATION, 3, 1, 6)])
    yield exif([(ORIENTATION, 3, 3, b"\x1a\0\0\0")]) + struct.pack("<HHH", 6, 1, 1)
    yield exif([(ORIENTATION, 4, 2, b"\x1a\0\0\0")]) + struct.pack("<II", 6, 1)
    yield exif([(ORIENTATION, 4, 2, b"\x1a\0\0\0")]) + struct.pack("<I", 6)
    yield b"MM*\0" + big[4:]
    yield b"II*\0" + struct.pack("<I", 12) + b"\xff" * 4 + good[8:]


def with_chunk(png, chunk, before):
    """The PNG with an eXIf chunk before its first IDAT or before its end."""
    at = png.index(before) - 4
    piece = b"eXIf" + chunk
    return png[:at] + struct.pack(">I", len(chunk)) + piece + struct.pack(">I", zlib.crc32(piece)) + png[at:]


def save(tensor, name):
    F.to_pil_image(tensor).save(FOLDER / name, optimize=True)


def main():
    assert torchvision.__version__.startswith("0.26"), "another torchvision may round otherwise"
    photo = Image.open(FOLDER.parent / "pictures" / "photo.rgb.png").convert("RGB").crop((3, 4, 33, 25))
    for orientation in range(1, 9):
        segment = simple(orientation, "<" if orientation % 2 else ">")
        if orientation == 3:
            by_pillow = Image.Exif()
            by_pillow[ORIENTATION] = 3
            segment = by_pillow.tobytes().removeprefix(b"Exif\0\0")
        photo.save(FOLDER / f"stored_{orientation}.jpg", quality=90, exif=b"Exif\0\0" + segment)
        upright = F.pil_to_tensor(ImageOps.exif_transpose(Image.open(FOLDER / f"stored_{orientation}.jpg")))
        save(upright, f"upright_{orientation}.png")
        save(F.resize(F.crop(upright, 3, 5, 17, 14), [9, 12], antialias=True), f"region_{orientation}.png")
        save(F.center_crop(F.resize(upright, 14, antialias=True), [9, 9]), f"centre_{orientation}.png")
    for orientation, before in ((6, b"IDAT"), (8, b"IEND")):
        path = FOLDER / f"stored_{orientation}.png"
        Image.open(FOLDER / f"stored_{orientation}.jpg").save(path, optimize=True, exif=b"")
        path.write_bytes(with_chunk(path.read_bytes(), simple(orientation), before))
        assert ImageOps.exif_transpose(Image.open(path)).tobytes() == Image.open(FOLDER / f"upright_{orientation}.png").tobytes()
    with open(FOLDER / "exif.txt", "w") as file:
        for segment in segments():
            print(orientation_by_pillow(segment), segment.hex(), file=file)


if __name__ == "__main__":
    main()
