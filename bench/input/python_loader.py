"""JPEGs to training batches in Python, by the loaders that we know, each in its best form. Prints one JSON line.

    python_loader.py pil FOLDER --threads 2 --images 4000

The job: RandomResizedCrop(224), a flip every other time, normalised -> float32 NCHW batches. FOLDER holds a folder of
files for each class. --threads: worker processes of a DataLoader, threads of SPDL and DALI.

images_per_core_second divides by the CPU seconds of this process and its ended children after set-up (imports, building
the pipeline, one picture that warms up). peak_rss_bytes: the largest sum of PSS over the process tree that was seen,
every half second, or this process's VmHWM where that is more. What looking on costs is taken off. mean and std of the
first batches tell whether the job is the same. A loader whose packages are missing prints {"left_out": why}.
"""
import argparse
import json
import math
import os
import pathlib
import random
import resource
import threading
import time

SIZE, MEAN, STD = 224, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
LOOKED_AT = 4  # batches whose mean and deviation are taken
SECONDS_BETWEEN_SAMPLES = 0.5


class LeftOut(Exception):
    pass


def cpu_seconds():
    """Of this process and of its children that have ended."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def process_tree(pid):
    yield pid
    for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from process_tree(int(child))


def kib(path, field):
    with open(path) as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field))


def tree_pss_bytes():
    total = 0
    try:
        for pid in process_tree(os.getpid()):
            total += kib(f"/proc/{pid}/smaps_rollup", "Pss:") * 1024
    except (OSError, StopIteration):  # one that has just ended
        pass
    return total


class PeakMemory:
    """Samples the process tree's memory while it is entered."""

    def __enter__(self):
        self.peak, self.cpu_seconds, self.done = 0, 0.0, threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)
        self.thread.start()
        return self

    def sample(self):
        while not self.done.wait(SECONDS_BETWEEN_SAMPLES):
            self.peak = max(self.peak, tree_pss_bytes())
            self.cpu_seconds = time.thread_time()

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()
        self.peak = max(self.peak, kib("/proc/self/status", "VmHWM") * 1024)


def measure(batches):
    import torch
    images, looking, means, deviations = 0, 0.0, [], []
    with PeakMemory() as memory:
        begin, cpu = time.perf_counter(), cpu_seconds()
        for index, batch in enumerate(batches):
            images += len(batch)
            if index < LOOKED_AT:
                before = time.thread_time()
                if batch.dtype != torch.float32 or batch.shape[1:] != (3, SIZE, SIZE) or not batch.is_contiguous():
                    raise ValueError(f"a batch is {tuple(batch.shape)} {batch.dtype}, strides {batch.stride()}")
                means.append(batch.mean().item())
                deviations.append(batch.std().item())
                looking += time.thread_time() - before
        seconds = time.perf_counter() - begin
    cpu = cpu_seconds() - cpu - looking - memory.cpu_seconds
    return {"images": images, "seconds": seconds, "images_per_second": images / seconds,
            "images_per_core_second": images / cpu, "peak_rss_bytes": memory.peak, "mean": sum(means) / len(means),
            "std": sum(deviations) / len(deviations)}


def normalise(images):
    """uint8, CHW or NCHW, to normalised float32: one new tensor, changed in place."""
    import torch
    mean, std = (torch.tensor(values).mul_(255).view(3, 1, 1) for values in (MEAN, STD))
    return images.to(torch.float32, memory_format=torch.contiguous_format).sub_(mean).div_(std)


def data_loader(args, load):
    """torch's DataLoader with worker processes; load: a sample from its file's name."""
    from torch.utils.data import DataLoader, Dataset

    class Files(Dataset):
        def __len__(self):
            return len(args.files)

        def __getitem__(self, index):
            return load(args.files[index])

    load(args.files[0])
    return DataLoader(Files(), batch_size=args.batch, num_workers=args.threads)


def pil(args):
    """What most training scripts do: torchvision's transforms on pictures that Pillow decodes."""
    from PIL import Image
    from torchvision import transforms
    transform = transforms.Compose([transforms.RandomResizedCrop(SIZE), transforms.RandomHorizontalFlip(),
                                    transforms.ToTensor(), transforms.Normalize(MEAN, STD, inplace=True)])
    return data_loader(args, lambda file: transform(Image.open(file).convert("RGB")))


def torchvision_bytes():
    """A function from a file's name to its cropped and flipped picture, uint8, with torchvision's own decoder."""
    from torchvision.io import ImageReadMode, decode_jpeg, read_file
    from torchvision.transforms import v2
    transform = v2.Compose([v2.RandomResizedCrop(SIZE, antialias=True), v2.RandomHorizontalFlip()])
    return lambda file: transform(decode_jpeg(read_file(file), mode=ImageReadMode.RGB))


def torchvision_io(args):
    load = torchvision_bytes()
    return data_loader(args, lambda file: normalise(load(file)))


def spdl_batches(args, load, collate):
    """SPDL: the same process, threads."""
    from spdl.pipeline import PipelineBuilder
    builder = PipelineBuilder().add_source(args.files).pipe(load, concurrency=args.threads).aggregate(args.batch)
    pipeline = builder.pipe(collate).add_sink(3).build(num_threads=args.threads)

    def batches():
        with pipeline.auto_stop():
            yield from pipeline
    return batches()


def spdl_torchvision(args):
    import spdl.pipeline  # noqa: F401: before the work, so that a missing package is told
    import torch
    load = torchvision_bytes()
    load(args.files[0])
    return spdl_batches(args, load, lambda samples: normalise(torch.stack(samples)))


def crop_box(width, height):
    """(x, y, width, height): the box that torchvision's RandomResizedCrop.get_params describes."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            return random.randint(0, width - w), random.randint(0, height - h), w, h
    side = min(width, height)
    return (width - side) // 2, (height - side) // 2, side, side


def spdl_ffmpeg(args):
    """SPDL with its own decoder. The caller puts FFmpeg's libraries on LD_LIBRARY_PATH."""
    import spdl.io
    import torch

    def load(file):
        packets = spdl.io.demux_image(file)
        x, y, w, h = crop_box(packets.codec.width, packets.codec.height)
        flip = ",hflip" if random.random() < 0.5 else ""
        return spdl.io.decode_packets(
            packets, filter_desc=f"crop={w}:{h}:{x}:{y}:exact=1,scale={SIZE}:{SIZE}:flags=bilinear{flip},format=rgb24")

    def collate(frames):
        nhwc = torch.from_numpy(spdl.io.to_numpy(spdl.io.convert_frames(frames)))
        return normalise(nhwc.permute(0, 3, 1, 2))

    try:
        load(args.files[0])
    except RuntimeError as error:
        if "import libspdl" not in str(error):
            raise
        raise LeftOut("SPDL finds no FFmpeg libraries") from error
    return spdl_batches(args, load, collate)


def dali(args):
    """DALI on the CPU, whose decoder decodes only the crop. Batches are views of its own memory."""
    import torch
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=args.batch, num_threads=args.threads, device_id=None, seed=1)
    def pipeline():
        encoded, _ = fn.readers.file(files=args.files, random_shuffle=False)
        images = fn.decoders.image_random_crop(encoded, device="cpu", random_area=[0.08, 1.0],
                                               random_aspect_ratio=[3 / 4, 4 / 3], adjust_orientation=False)
        images = fn.resize(images, resize_x=SIZE, resize_y=SIZE, antialias=True)
        return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), dtype=types.FLOAT, output_layout="CHW",
                                        mean=[255 * x for x in MEAN], std=[255 * x for x in STD])

    pipe = pipeline()
    pipe.build()
    # It runs ahead without an end: from one batch to a later one, as much is begun as is taken.
    for _ in range(3):
        pipe.run()

    def batches():
        for _ in range(math.ceil(len(args.files) / args.batch)):
            yield torch.from_dlpack(pipe.run()[0].as_tensor())
    return batches()


LOADERS = {function.__name__: function for function in (pil, torchvision_io, spdl_torchvision, spdl_ffmpeg, dali)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("loader", choices=LOADERS)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--images", type=int, default=4000, help="files are repeated, or left out, to get so many")
    parser.add_argument("--batch", type=int, default=64)
    args = parser.parse_args()
    files = sorted(str(path) for path in args.folder.glob("*/*"))
    if not files:
        parser.error(f"{args.folder}: holds no folders of pictures")
    args.files = (files * math.ceil(args.images / len(files)))[:args.images]
    random.seed(0)
    random.shuffle(args.files)
    try:
        import torch
        torch.set_num_threads(1)
        torch.manual_seed(0)
        batches = LOADERS[args.loader](args)
    except (ImportError, LeftOut) as error:
        result = {"left_out": str(error)}
    else:
        result = measure(batches)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
