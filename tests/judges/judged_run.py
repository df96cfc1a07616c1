"""The run that the judges look at: `./dev judges` trains one and names it in SKYTRAIN_JUDGED_RUN."""
import json
import os
import pathlib
from typing import Any


def folder() -> pathlib.Path:
    return pathlib.Path(os.environ["SKYTRAIN_JUDGED_RUN"])


def repository() -> pathlib.Path:
    return pathlib.Path(__file__).resolve().parents[2]


def metrics() -> list[dict[str, Any]]:
    with open(folder() / "metrics.jsonl") as file:
        return [json.loads(line) for line in file]


def summary() -> dict[str, Any]:
    return json.loads((folder() / "summary.json").read_text())


def newest_checkpoint() -> pathlib.Path:
    return max((folder() / "checkpoints").glob("step-*"))
