#!/usr/bin/env python3
"""Makes the weights files of this folder, and expected.json: what Python PyTorch reads from them.

    .deps/peers/bin/python tests/testdata/weights/make_weights.py

skytrain/weights/fixture_test.cc reads every file and compares. A file is either read (its arrays, as torch.load gives
them, `note` and `ignored` as said here) or refused (with these words). The files stay as they are: a new PyTorch may
write them differently, and what older ones wrote must still be read.
"""
import collections
import io
import json
import pathlib
import pickle
import struct
import tarfile
import zipfile

import torch
from safetensors.torch import save_file

HERE = pathlib.Path(__file__).resolve().parent
DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
          torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL"}
expected = {}


def count(*shape, dtype=torch.float32):
    """1, 2, 3 … in this shape."""
    elements = 1
    for extent in shape:
        elements *= extent
    return (torch.arange(elements) + 1).to(dtype).reshape(shape)


def described(name, tensor):
    plain = tensor.detach().clone(memory_format=torch.contiguous_format)
    content = bytes(plain.flatten().view(torch.uint8).tolist()) if plain.numel() else b""
    return [name, DTYPES[plain.dtype], list(plain.shape), content.hex()]


def reads(file, weights, note="", ignored=0):
    expected[file] = {"arrays": [described(name, tensor) for name, tensor in weights.items()], "note": note,
                      "ignored": ignored}


def refused(file, *words):
    expected[file] = {"refused": list(words)}


def save(file, value, **how):
    torch.save(value, HERE / file, **how)


def legacy(file, value, **how):
    save(file, value, _use_new_zipfile_serialization=False, **how)


def small_model():
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2))


def dtypes():
    return {str(dtype).removeprefix("torch."): count(2, 3, dtype=dtype) % 2 if dtype is torch.bool else
            count(2, 3, dtype=dtype) for dtype in DTYPES} | {"bools": torch.tensor([True, False, True])}


def views():
    base = count(4, 6)
    tied = count(3)
    return {"base": base, "transposed": base.t(), "rows": base[1:3], "columns": base[:, 2:4], "every_other": base[::2, ::3],
            "permuted": count(2, 3, 4, dtype=torch.int16).permute(2, 0, 1), "one_column": base[:, 5:6],
            "expanded": count(1, 3).expand(2, 3), "tied_a": tied, "tied_b": tied, "scalar": torch.tensor(7.5),
            "scalar_view": base[3, 4], "empty": torch.zeros(0, 5), "empty_view": base[2:2], "half": count(5).half()[1::2],
            "double": count(2, 2, dtype=torch.float64).t(), "byte": count(2, 3, dtype=torch.uint8).t()}


def parameters():
    plain = torch.nn.Parameter(count(2, 2))
    with_attribute = torch.nn.Parameter(count(3), requires_grad=False)
    with_attribute.no_decay = True
    return {"parameter": plain, "attribute": with_attribute, "leaf": count(2).requires_grad_()}


def checkpoint(state):
    model = small_model()
    optimizer = torch.optim.Adam(model.parameters())
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [2, 5])
    model(torch.zeros(1, 1, 4, 4)).sum().backward()
    optimizer.step()
    return {"epoch": 3, "state_dict": state, "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(),
            "rng_state": count(4, dtype=torch.uint8), "device": torch.device("cpu"), "size": torch.Size([2, 3]),
            "dtype": torch.float32, "best": 0.5, "classes": {"cat", "dog"}, "raw": b"\0\1", "array": bytearray(b"xy"),
            "complex": 1j, "large": 1 << 100, "negative": [-1, -300, -100000, 1 << 40], "none": None}


def zip_files():
    save("zip_dtypes.pt", dtypes())
    reads("zip_dtypes.pt", dtypes())
    save("zip_views.pt", views())
    reads("zip_views.pt", views())
    save("zip_parameters.pt", parameters())
    reads("zip_parameters.pt", parameters())
    state = small_model().state_dict()
    save("zip_state_dict.pt", state)
    reads("zip_state_dict.pt", state)

    parallel = torch.nn.DataParallel(small_model()).state_dict()
    save("zip_checkpoint.pt", checkpoint(parallel))
    reads("zip_checkpoint.pt", state, ignored=15,
          note='took the state dict under "state_dict"; took "module." (DataParallel) off all names')
    for protocol in (3, 4, 5):
        save(f"zip_protocol{protocol}.pt", checkpoint(state), pickle_protocol=protocol)
        reads(f"zip_protocol{protocol}.pt", state, 'took the state dict under "state_dict"', 15)
    for key in ("model", "model_state_dict", "module"):
        save(f"zip_under_{key}.pt", {"epoch": 1, key: state, "name": "small"})
        reads(f"zip_under_{key}.pt", state, f'took the state dict under "{key}"', 2)
    save("zip_under_two.pt", {"model": {"config": {"depth": 2}, "state_dict": dict(state)}, "epoch": 1})
    reads("zip_under_two.pt", state, 'took the state dict under "model"."state_dict"', 2)
    save("zip_under_own_key.pt", {"net": state, "acc": 93.5, "epoch": 7})
    reads("zip_under_own_key.pt", state, 'took the state dict under "net"', 2)
    extra = state | {"0._extra_state": {"scale": count(2)}, "steps": 12}
    save("zip_extra_state.pt", extra)
    reads("zip_extra_state.pt", state, ignored=2)
    save("zip_nothing.pt", {})
    reads("zip_nothing.pt", {})

    torch.serialization.set_crc32_options(False)
    save("zip_without_crc.pt", state)
    torch.serialization.set_crc32_options(True)
    reads("zip_without_crc.pt", state)
    with zipfile.ZipFile(HERE / "zip_state_dict.pt") as old, zipfile.ZipFile(HERE / "zip_rezipped.pt", "w") as new:
        new.mkdir("other")
        for name in old.namelist():
            new.writestr("other/" + name.split("/", 1)[1], old.read(name))
        new.comment = b"zipped again"
    reads("zip_rezipped.pt", state)


def zip_refusals():
    state = small_model().state_dict()
    with zipfile.ZipFile(HERE / "zip_state_dict.pt") as old:
        with zipfile.ZipFile(HERE / "zip_big_endian.pt", "w") as new:
            for name in old.namelist():
                new.writestr(name, b"big" if name.endswith("/byteorder") else old.read(name))
        with zipfile.ZipFile(HERE / "zip_compressed.pt", "w", zipfile.ZIP_DEFLATED) as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
    refused("zip_big_endian.pt", "big-endian")
    refused("zip_compressed.pt", "compressed member")
    torch.jit.trace(torch.nn.Linear(2, 1), count(1, 2)).save(HERE / "torchscript.pt")
    refused("torchscript.pt", "TorchScript")
    save("zip_whole_module.pt", torch.nn.Linear(2, 1))
    refused("zip_whole_module.pt", "whole module", "torch.nn.modules.linear.Linear")
    save("zip_list.pt", [count(2)])
    refused("zip_list.pt", "holds a list, not a dict of named tensors")
    save("zip_tensor.pt", count(2))
    refused("zip_tensor.pt", "holds a tensor, not a dict of named tensors")
    save("zip_no_tensors.pt", {"epoch": 1, "name": "x"})
    refused("zip_no_tensors.pt", "holds no tensors under names, but 2 other entries")
    save("zip_two_networks.pt", {"netG": state, "netD": state | {"more": count(1)}})
    refused("zip_two_networks.pt", "several dicts of tensors", '"netG", "netD"')
    save("zip_unclear.pt", {"net": state, "best": torch.tensor(0.5)})
    refused("zip_unclear.pt", 'beside them a dict of tensors, "net"')
    unsupported = {"complex": (count(2) * 1j, "a complex tensor"), "sparse": (count(2, 2).to_sparse(), "a sparse tensor"),
                   "quantized": (torch.quantize_per_tensor(count(2), 0.1, 0, torch.qint8), "a quantized tensor"),
                   "float8": (count(2).to(torch.float8_e4m3fn), "dtype torch.float8_e4m3fn"),
                   "uint16": (count(2).to(torch.uint16), "dtype torch.uint16"),
                   "meta": (torch.zeros(2, device="meta"), "meta device")}
    for name, (tensor, words) in unsupported.items():
        save(f"zip_{name}.pt", {"w": tensor})
        refused(f"zip_{name}.pt", words)
    save("zip_numpy.pt", {"w": count(2), "best": count(1).double().numpy()[0]})
    refused("zip_numpy.pt", "refers to numpy.")


# Defined in text, so that PyTorch finds no source of it to put into the file, with its path.
exec("class Own(torch.nn.Linear):\n    def __init__(self):\n        super().__init__(2, 1)\n")


def legacy_files():
    legacy("legacy_dtypes.pt", dtypes())
    reads("legacy_dtypes.pt", dtypes())
    legacy("legacy_views.pt", views())
    reads("legacy_views.pt", views())
    legacy("legacy_parameters.pt", parameters())
    reads("legacy_parameters.pt", parameters())
    state = small_model().state_dict()
    legacy("legacy_checkpoint.pt", checkpoint(state))
    reads("legacy_checkpoint.pt", state, 'took the state dict under "state_dict"', 15)
    legacy("legacy_protocol4.pt", state, pickle_protocol=4)
    reads("legacy_protocol4.pt", state)
    legacy("legacy_whole_module.pt", Own())
    refused("legacy_whole_module.pt", "whole module", "__main__.Own")


class Oldest(pickle.Pickler):
    """Pickles made as PyTorch 0.1 did: storages with views, Parameters by class and state."""

    def persistent_id(self, value):
        return value.identity if isinstance(value, Storage) else None


class Storage:
    def __init__(self, kind, key, elements, view=None):
        self.identity = ("storage", kind, key, "cpu", elements, view)


class Tensor:
    def __init__(self, storage, offset, size, stride):
        self.parts = (storage, offset, size, stride)

    def __reduce__(self):
        return torch._utils._rebuild_tensor, self.parts


class Parameter:
    def __init__(self, state, *arguments):
        self.state, self.arguments = state, arguments

    def __reduce_ex__(self, protocol):
        if self.arguments:
            return torch.nn.Parameter, self.arguments, self.state
        return pickle_new, (), self.state


def pickle_new():
    raise NotImplementedError


def legacy_oldest():
    """What 0.1.x wrote, with Python 2's strings and OrderedDict: put together by hand, and opened by torch.load."""
    floats = Storage(torch.FloatStorage, "1000", 6)
    view = Storage(torch.FloatStorage, "1000", 6, ("1001", 2, 4))
    longs = Storage(torch.LongStorage, "2000", 2)
    items = [["conv.weight", Parameter((True, False, collections.OrderedDict()), Tensor(floats, 0, (2, 3), (3, 1)))],
             ["conv.bias", Tensor(view, 1, (2,), (1,))],
             ["steps", Tensor(longs, 1, (1,), (1,))]]

    def pickled(value):
        out = io.BytesIO()
        Oldest(out, 2).dump(value)
        # Python 2's str: SHORT_BINSTRING instead of BINUNICODE.
        text = out.getvalue()
        for word in ("conv.weight", "conv.bias", "steps", "storage", "cpu", "1000", "1001", "2000"):
            text = text.replace(b"X" + struct.pack("<I", len(word)) + word.encode(), b"U" + bytes([len(word)]) + word.encode())
        return text

    class Items:
        def __reduce__(self):
            return collections.OrderedDict, (items,)

    head = [pickle.dumps(value, 2) for value in
            (0x1950a86a20f9469cfc6c, 1001, {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}})]
    tail = pickled(["1000", "2000"])
    tail += struct.pack("<q6f", 6, 1, 2, 3, 4, 5, 6) + struct.pack("<q2q", 2, 10, 20)
    file = HERE / "legacy_python2.pt"
    file.write_bytes(b"".join(head) + pickled(Items()) + tail)
    weights = {"conv.weight": count(2, 3), "conv.bias": torch.tensor([4.0, 5.0]), "steps": torch.tensor([20])}
    loaded = torch.load(file, weights_only=False)
    assert [torch.equal(loaded[name], tensor) for name, tensor in weights.items()] == [True] * 3, loaded
    reads(file.name, weights)

    # Still older: an empty Parameter, filled by a state of five.
    state = (Tensor(floats, 0, (6,), (1,)), None, collections.OrderedDict(), True, False)
    text = pickled({"w": Parameter(state)})
    name = pickle_new.__module__.encode()
    text = text.replace(b"c" + name + b"\npickle_new\n", b"ctorch.nn.parameter\nParameter\n")
    at = text.index(b"ctorch.nn.parameter\nParameter\n")
    text = text[:at] + text[at:].replace(b")R", b")\x81", 1)  # NEWOBJ
    file = HERE / "legacy_new_parameter.pt"
    file.write_bytes(b"".join(head) + text + pickled(["1000"]) + struct.pack("<q6f", 6, 1, 2, 3, 4, 5, 6))
    assert torch.equal(torch.load(file, weights_only=True)["w"], count(6))
    reads(file.name, {"w": count(6)})

    head[2] = pickle.dumps({"protocol_version": 1001, "little_endian": False, "type_sizes": {"int": 4}}, 2)
    (HERE / "legacy_big_endian.pt").write_bytes(b"".join(head) + pickled(Items()) + tail)
    refused("legacy_big_endian.pt", "big-endian")


def others():
    with tarfile.open(HERE / "tar.pt", "w") as tar:
        for name in ("sys_info", "pickle", "tensors", "storages"):
            tar.addfile(tarfile.TarInfo(name))
    refused("tar.pt", "tar form of its first versions")
    (HERE / "plain_pickle.pkl").write_bytes(pickle.dumps({"w": [1.0, 2.0]}, 2))
    refused("plain_pickle.pkl", "Python pickle", "not a file of torch.save")
    save_file({"b.weight": count(2, 3), "a.bias": count(2).half()}, HERE / "two.safetensors", {"format": "pt"})
    reads("two.safetensors", {"a.bias": count(2).half(), "b.weight": count(2, 3)})
    save_file({"module.w": count(2)}, HERE / "parallel.safetensors")
    reads("parallel.safetensors", {"w": count(2)}, 'took "module." (DataParallel) off all names')


def main():
    for make in (zip_files, zip_refusals, legacy_files, legacy_oldest, others):
        make()
    lines = ",\n".join(f"{json.dumps(file)}: {json.dumps(expected[file])}" for file in sorted(expected))
    (HERE / "expected.json").write_text("{\n" + lines + "\n}\n")
    print(f"{len(expected)} files")


if __name__ == "__main__":
    main()
