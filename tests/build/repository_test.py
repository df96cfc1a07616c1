"""What is committed fits everyone's machine: no path of a developer's machine, no file beyond what a host takes, scripts
that can be run, links that lead somewhere."""
import pathlib
import re
import tempfile
from typing import Iterable, Iterator

import check

LARGEST_BYTES = 45 * 1024 * 1024
# Written in pieces, so that this file does not find itself. /home/me is nobody's: tests may say it.
MACHINE_PATH = re.compile(rb"(?<![\w.$}])/(?:" + rb"|".join([b"work" + b"/", b"root" + b"/", b"home" + rb"/(?!me\b)", b"Users" + b"/"]) + rb")")
# A link of Markdown to a file of the repository: not to an address, nor within the page.
LINK = re.compile(r"\]\((?!\w+:|#|//)([^)#\s]+)[^)]*\)")
MARKERS = re.compile(rb"^(<{7} |>{7} |={7}$)", re.MULTILINE)


def findings(source: pathlib.Path, files: Iterable[pathlib.Path]) -> Iterator[str]:
    for path in files:
        name = path.relative_to(source)
        if path.stat().st_size > LARGEST_BYTES:
            yield f"{name}: is {path.stat().st_size >> 20} MiB, the limit is {LARGEST_BYTES >> 20} MiB"
            continue
        content = path.read_bytes()
        if content.startswith(b"#!") and not path.stat().st_mode & 0o100:
            yield f"{name}: starts with #! but is not executable"
        if b"\0" in content[:8192]:
            continue
        for number, line in enumerate(content.split(b"\n"), start=1):
            if MACHINE_PATH.search(line):
                yield f"{name}:{number}: names a path of one machine: {line.strip()[:100].decode(errors='replace')}"
        if path.suffix == ".md":
            for link in LINK.findall(content.decode(errors="replace")):
                if not (path.parent / link).exists():
                    yield f"{name}: links to {link}, which is not there"
        if MARKERS.search(content):
            yield f"{name}: has a merge conflict's markers"


def self_test() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder)
        contents = {"good.txt": "see /usr/share and $x/work" + "/y\n", "path.txt": "cd /wo" + "rk/main\n",
                    "script": "#!/bin/sh\n", "page.md": "[a](good.txt#x) [b](https://x.y/z) [c](#d) ![e](gone.png)\n"}
        for name, text in contents.items():
            (source / name).write_text(text)
        with open(source / "large", "wb") as file:
            file.truncate(LARGEST_BYTES + 1)
        found = [finding.split(":")[0] for finding in findings(source, sorted(source.iterdir()))]
        assert found == ["large", "page.md", "path.txt", "script"], found


if __name__ == "__main__":
    self_test()
    source = check.arguments().source
    check.report(findings(source, check.tracked_files(source)))
