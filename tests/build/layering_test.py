"""Dependencies point one way, and LibTorch stays where it belongs.

CMakeLists.txt declares the folders in order, with DEPS. This check reads every #include of skytrain/:
  - "skytrain/<folder>/…" only of the own folder or of one in DEPS, which must be declared earlier
  - LibTorch's headers only in folders marked TORCH; <torch/torch.h> in no unit: the precompiled header brings it
  - fmt and spdlog only in base/*.cc, because LibTorch ships another fmt
"""
import pathlib
import re
import tempfile
from typing import Iterator, NamedTuple

import check

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH_HEADER = re.compile(r"^(torch|ATen|c10|caffe2|torchheaderonly)/")
LOGGER_HEADER = re.compile(r"^(fmt|spdlog)/")


class Folder(NamedTuple):
    torch: bool
    deps: set[str]


def declared_folders(cmake: str) -> dict[str, Folder]:
    """The skytrain_folder(...) lines, in their order."""
    folders: dict[str, Folder] = {}
    for name, rest in re.findall(r"^skytrain_folder\((\w+)\s*([^)]*)\)", cmake, re.MULTILINE):
        words = rest.split()
        deps = {word for word in words[words.index("DEPS") + 1:] if "::" not in word} if "DEPS" in words else set()
        folders[name] = Folder("TORCH" in words, deps)
    return folders


def findings(source: pathlib.Path) -> Iterator[str]:
    folders = declared_folders((source / "CMakeLists.txt").read_text())
    if len(folders) < 2:
        yield "CMakeLists.txt: no skytrain_folder(...) declarations were found"
    order = list(folders)
    for name, folder in folders.items():
        for dep in folder.deps - set(order[:order.index(name)]):
            yield f"CMakeLists.txt: {name} depends on {dep}, which is not declared above it"
    for path in sorted((source / "skytrain").rglob("*")):
        if path.suffix in (".h", ".cc", ".cu"):
            yield from findings_in_file(source, path, folders)


def findings_in_file(source: pathlib.Path, path: pathlib.Path, folders: dict[str, Folder]) -> Iterator[str]:
    name = path.relative_to(source / "skytrain").parts[0]
    if name not in folders:
        yield f"{path.relative_to(source)}: skytrain/{name} is not declared in CMakeLists.txt"
        return
    for number, line in enumerate(path.read_text(errors="replace").splitlines(), start=1):
        include = INCLUDE.match(line)
        if not include:
            continue
        header = include.group(2)
        place = f"{path.relative_to(source)}:{number}: includes {header}"
        if header.startswith("skytrain/"):
            other = header.split("/")[1]
            if other != name and other not in folders[name].deps:
                yield f"{place}, but {other} is not in the DEPS of {name}"
        elif TORCH_HEADER.match(header):
            if not folders[name].torch:
                yield f"{place}, but {name} is a folder without LibTorch"
            elif header == "torch/torch.h":
                yield f"{place}: the precompiled header brings it; include the narrow header instead"
        elif LOGGER_HEADER.match(header) and not (name == "base" and path.suffix == ".cc"):
            yield f"{place}: only base/*.cc may, LibTorch ships another fmt"


def self_test() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder)
        (source / "CMakeLists.txt").write_text(
            "skytrain_folder(base)\nskytrain_folder(data DEPS base)\nskytrain_folder(train TORCH DEPS base data)\n")
        files = {
            "base/a.h": '#include "skytrain/data/b.h"\n',
            "base/log.cc": "#include <spdlog/spdlog.h>\n",
            "data/b.h": "#include <ATen/ATen.h>\n#include <fmt/core.h>\n",
            "train/c.cc": "#include <torch/torch.h>\n#include <ATen/core/Tensor.h>\n",
            "stray/d.h": "\n",
        }
        for name, text in files.items():
            (source / "skytrain" / name).parent.mkdir(parents=True, exist_ok=True)
            (source / "skytrain" / name).write_text(text)
        places = [finding.split(": ")[0] for finding in findings(source)]
        wanted = ["skytrain/base/a.h:1", "skytrain/data/b.h:1", "skytrain/data/b.h:2", "skytrain/stray/d.h",
                  "skytrain/train/c.cc:1"]
        assert places == wanted, places


if __name__ == "__main__":
    self_test()
    check.report(findings(check.arguments().source))
