#!/usr/bin/env python3
"""A program that PyTorch's users have: DistributedDataParallel over Gloo on two ranks, under `skytrain run`.

usage: judge_run.py [RUN_DIR]          (the run that other judges look at is not needed)

Every variable that torchrun sets is set, and those that do not differ from run to run have the same values. The loop
ends with the weights that it has under torchrun, bit for bit; also on two nodes, when a rank is killed by SIGKILL in
the middle and all go on from the newest committed checkpoint, and when SIGTERM interrupts it and the same command is
given again.
"""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

try:
    import torch
except ImportError:
    if os.environ.get("SKYTRAIN_JUDGE_AGAIN"):
        raise
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
    from lib import peers
    python = peers.python()
    os.execve(python, [python, *sys.argv], {**os.environ, "SKYTRAIN_JUDGE_AGAIN": "1"})

SKYTRAIN = pathlib.Path(__file__).resolve().parents[2] / "build/release/bin/skytrain"
STEPS = 40
# What differs from run to run, and what torchrun tells itself.
OWN = {"MASTER_PORT", "MASTER_ADDR", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE", "TORCHELASTIC_ERROR_FILE",
       "TORCHELASTIC_SIGNALS_TO_HANDLE"}

PROGRAM = """
import os, pathlib, signal, sys, time
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

steps, name, fault = int(sys.argv[1]), sys.argv[2], sys.argv[3]
dist.init_process_group("gloo")
rank, out = dist.get_rank(), pathlib.Path("out")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
first = 0
if resume := os.environ.get("SKYTRAIN_RESUME_FROM"):
    state = torch.load(resume)
    model.load_state_dict(state["model"]); optimizer.load_state_dict(state["optimizer"]); first = state["step"]
notice = os.environ.get("SKYTRAIN_NOTICE_FILE", "")
signal.signal(signal.SIGTERM, lambda *_: None)  # the file tells

def save(step):
    if rank == 0:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
        torch.save(state, out / "new.tmp")
        os.rename(out / "new.tmp", out / f"step-{step:05}.pt")

for step in range(first, steps):
    x = torch.randn(4, 8, generator=torch.Generator().manual_seed(2 * step + rank))
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
    if fault and step == 20 and os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0":
        if fault == "kill" and rank == 1:
            while not pathlib.Path("kept/step-00010.pt.skytrain.json").exists(): time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "wait":
            pathlib.Path(f"at-{rank}").touch()
            while not os.path.exists(notice): time.sleep(0.01)
    stop = torch.tensor([float(os.path.exists(notice))])
    dist.all_reduce(stop)
    if stop.item() > 0:
        save(step + 1)
        dist.barrier()
        dist.destroy_process_group()
        sys.exit(75)
    if (step + 1) % 10 == 0: save(step + 1)
env = {k: v for k, v in os.environ.items() if not k.startswith("SKYTRAIN")}
torch.save({"model": model.state_dict(), "env": env, "first": first}, f"{name}-{rank}.pt")
dist.barrier()
dist.destroy_process_group()
"""


def launch(launcher: list[str], name: str, fault: str, folder: pathlib.Path,
           env: dict | None = None) -> subprocess.Popen:
    program = ([] if "torch.distributed.run" in launcher else ["--", sys.executable]) + ["program.py"]
    return subprocess.Popen([*launcher, *program, str(STEPS), name, fault], cwd=folder, text=True,
                            env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finished(process: subprocess.Popen, code: int) -> str:
    text = process.communicate(timeout=120)[0]
    assert process.returncode == code, f"exit {process.returncode}, expected {code}:\n{text}"
    return text


def result(folder: pathlib.Path, name: str) -> list[dict]:
    return [torch.load(folder / f"{name}-{rank}.pt") for rank in range(2)]


def same(ours: list[dict], theirs: list[dict]) -> bool:
    return all(torch.equal(ours[rank]["model"][key], value) for rank in range(2)
               for key, value in theirs[rank]["model"].items())


def judge(folder: pathlib.Path) -> None:
    (folder / "out").mkdir()
    (folder / "program.py").write_text(PROGRAM)
    run = [str(SKYTRAIN), "run", "--nproc", "2"]
    commit = [*run, "--max-restarts", "1", "--watch", "out", "--commit-to", "kept"]

    begin = time.monotonic()
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    finished(launch(torchrun, "torchrun", "", folder), 0)
    theirs, torchrun_seconds = result(folder, "torchrun"), time.monotonic() - begin
    begin = time.monotonic()
    finished(launch(run, "plain", "", folder), 0)
    plain, seconds = result(folder, "plain"), time.monotonic() - begin
    assert same(plain, theirs), "the weights differ from those under torchrun"
    for rank in range(2):
        expected = {key: value for key, value in theirs[rank]["env"].items()
                    if key not in os.environ and key not in OWN}
        differing = {key: (plain[rank]["env"].get(key), value) for key, value in expected.items()
                     if plain[rank]["env"].get(key) != value}
        assert not differing, f"rank {rank}: ours, torchrun's: {differing}"
    print(f"DDP, 2 ranks, {STEPS} steps: the same weights and environment as under torchrun; "
          f"{seconds:.1f} s, under torchrun {torchrun_seconds:.1f} s")

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        place = f"127.0.0.1:{probe.getsockname()[1]}"
    node = [str(SKYTRAIN), "run", "--nodes", "2", "--join", place]
    key = {"SKYTRAIN_JOB_KEY": "a key for the judge's two nodes"}
    nodes = [launch(node, "nodes", "", folder, key) for _ in range(2)]
    for process in nodes:
        finished(process, 0)
    two = result(folder, "nodes")
    assert same(two, theirs), "the weights differ on two nodes"
    assert [env["env"]["GROUP_RANK"] for env in two] == ["0", "1"]
    print("on two nodes of one rank each: the same weights")

    text = finished(launch(commit, "killed", "kill", folder), 0)
    killed = result(folder, "killed")
    assert "rank 1 was killed by SIGKILL" in text and "again (1 of 1)" in text, text
    assert killed[0]["first"] >= 10 and same(killed, theirs), (killed[0]["first"], text)
    print(f"a rank killed: all went on from step {killed[0]['first']} to the same weights")

    for path in [*folder.glob("kept/*"), *folder.glob("out/*")]:
        path.unlink()
    process = launch(commit, "stopped", "wait", folder)
    while not all((folder / f"at-{rank}").exists() for rank in range(2)):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    text = finished(process, 75)
    assert (folder / "kept/step-00021.pt").exists(), text
    finished(launch(commit, "stopped", "", folder), 0)
    stopped = result(folder, "stopped")
    assert stopped[0]["first"] == 21 and same(stopped, theirs), stopped[0]["first"]
    print("SIGTERM: saved at step 21, committed, and the same command went on to the same weights")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="skytrain-judge-") as temporary:
        judge(pathlib.Path(temporary))
