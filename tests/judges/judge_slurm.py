#!/usr/bin/env python3
"""`skytrain run` and `skytrain train` under a real Slurm: two nodes on this machine, in a temporary folder.

usage: judge_slurm.py [RUN_DIR]          (the run that other judges look at is not needed)

Debian's slurmctld, slurmd, slurm-client and munge; where they are not installed this says so and judges nothing.
Nothing of the system's own Slurm is touched: other ports, other folders, a munge of its own.

srun starts one `skytrain run` a node, and they find each other without a flag; without a key, and with two tasks a
node, they refuse. scancel --signal=USR1, sbatch's --signal=USR1@T, scancel (SIGTERM, SIGKILL after KillWait) and
scontrol requeue do what they do to a program that saves: all ranks are told, all save, the next start goes on from
there, and nothing is left.
"""
import getpass
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKYTRAIN = ROOT / "build/release/bin/skytrain"
PROGRAMS = ("slurmctld", "slurmd", "munged", "srun", "sbatch", "scancel", "scontrol", "squeue")
PATIENCE = 60
KILL_WAIT = 8

CONFIGURATION = """
ClusterName=judge
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait={kill_wait}
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
NodeName=127.0.0.1 NodeHostname={host} NodeAddr=127.0.0.1 Port={port1} CPUs=2 State=UNKNOWN
NodeName=127.0.0.2 NodeHostname={host} NodeAddr=127.0.0.2 Port={port2} CPUs=2 State=UNKNOWN
"""

# A program that saves at a notice, as docs/run.md has it.
PROGRAM = """
import json, os, pathlib, signal, sys, time
def touch(name, text=''):
    pathlib.Path(name + '.new').write_text(text)
    os.rename(name + '.new', name)
rank, seconds = os.environ['RANK'], float(sys.argv[2])
tag = sys.argv[1]
for number in (signal.SIGTERM, signal.SIGUSR1): signal.signal(number, lambda *_: None)
keys = ('RANK', 'WORLD_SIZE', 'GROUP_RANK', 'LOCAL_RANK', 'MASTER_ADDR', 'MASTER_PORT', 'SKYTRAIN_RESUME_FROM')
touch(f'{tag}-{rank}', json.dumps({**{key: os.environ.get(key) for key in keys}, 'pid': os.getpid(),
                                   'has_key': 'SKYTRAIN_JOB_KEY' in os.environ}))
end = time.time() + seconds
while not os.path.exists(os.environ['SKYTRAIN_NOTICE_FILE']):
    if time.time() > end: sys.exit(0)
    time.sleep(0.02)
if len(sys.argv) > 3: time.sleep(float(sys.argv[3]))
if rank == '0': touch('out/state.pt', 'saved by ' + tag)
touch(f'{tag}-{rank}-saved', pathlib.Path(os.environ['SKYTRAIN_NOTICE_FILE']).read_text())
sys.exit(75)
"""


def wait_for(condition, what, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {seconds} s for {what}"
        time.sleep(0.05)
    return value


class Cluster:
    def __init__(self, folder: pathlib.Path):
        self.folder, self.daemons = folder, []
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith(("SLURM", "SKYTRAIN"))}
        self.environment["SLURM_CONF"] = str(folder / "slurm.conf")

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        folder, host = self.folder, socket.gethostname().split(".")[0]
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        (folder / "state").mkdir()
        for node in ("127.0.0.1", "127.0.0.2"):
            (folder / f"spool-{node}").mkdir(exist_ok=True)
        (folder / "slurm.conf").write_text(CONFIGURATION.format(host=host, user=getpass.getuser(), folder=folder,
                                                                port=26817, port1=26818, port2=26819,
                                                                kill_wait=KILL_WAIT))
        self.daemon("munged", "--foreground", f"--key-file={key}", f"--socket={folder}/munge.sock", "--force",
                    f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/seed")
        wait_for((folder / "munge.sock").exists, "munged")
        self.daemon("slurmctld", "-D", "-f", folder / "slurm.conf")
        for node in ("127.0.0.1", "127.0.0.2"):
            self.daemon("slurmd", "-D", "-N", node, "-f", folder / "slurm.conf")
        idle = ("sinfo", "-h", "-o", "%D %t")
        wait_for(lambda: self.call(*idle, check=False).stdout.strip() == "2 idle", "two idle nodes")

    def __exit__(self, *_):
        self.call("scancel", "--full", "--user", getpass.getuser(), check=False)
        time.sleep(0.5)
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(15)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def daemon(self, *words):
        log = open(self.folder / f"{words[0]}.out", "ab")
        path = shutil.which(words[0], path="/usr/sbin:/usr/bin:/sbin")
        command = [path, *map(str, words[1:])]
        self.daemons.append(subprocess.Popen(command, stdout=log, stderr=log, env=self.environment))

    def call(self, *words, check=True, **environment):
        result = subprocess.run([str(word) for word in words], cwd=self.folder, text=True, capture_output=True,
                                timeout=PATIENCE * 2, env={**self.environment, **environment})
        assert not check or result.returncode == 0, f"{words}: {result.returncode}\n{result.stdout}{result.stderr}"
        return result

    def submit(self, script, *flags):
        path = self.folder / "job.sh"
        path.write_text("#!/bin/bash\n" + script)
        options = ("--parsable", "--output", "job-%j.out", "--open-mode=append", *flags)
        return self.call("sbatch", *options, path).stdout.strip()

    def state(self, job):
        text = self.call("scontrol", "show", "job", job, check=False).stdout
        return (re.findall(r"JobState=(\w+)", text) or [""])[0]

    def output(self, job):
        path = self.folder / f"job-{job}.out"
        return path.read_text() if path.exists() else ""

    def finished(self, job, seconds=PATIENCE):
        going = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING")
        wait_for(lambda: self.state(job) not in going, f"job {job}", seconds)
        return self.output(job)


def running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def judge(folder: pathlib.Path) -> None:
    (folder / "out").mkdir()
    (folder / "program.py").write_text(PROGRAM)
    key = "export SKYTRAIN_JOB_KEY=$(openssl rand -hex 32)\n"
    program = [sys.executable, "program.py"]
    run = [SKYTRAIN, "run", "--grace", "20s"]
    words = " ".join(map(str, [*run, "--", *program]))

    def ranks(tag, suffix="", count=2, seconds=PATIENCE):
        paths = [folder / f"{tag}-{rank}{suffix}" for rank in range(count)]
        wait_for(lambda: all(path.exists() for path in paths), f"{tag}{suffix} of {count} ranks", seconds)
        return [json.loads(path.read_text()) for path in paths]

    def nothing_is_left(tag):
        pids = [place["pid"] for place in ranks(tag)]
        wait_for(lambda: not any(map(running, pids)), f"the end of {pids}")

    with Cluster(folder) as slurm:
        one_a_node = ["srun", "-N2", "--ntasks-per-node=1"]
        result = slurm.call(*one_a_node, *run, "--nproc", 2, "--", *program, "srun", 0,
                            SKYTRAIN_JOB_KEY="0123456789abcdef")
        places = ranks("srun", count=4)
        assert [place["RANK"] for place in places] == list("0123")
        assert {place["WORLD_SIZE"] for place in places} == {"4"}
        assert [place["GROUP_RANK"] for place in places] == list("0011")
        assert len({(place["MASTER_ADDR"], place["MASTER_PORT"]) for place in places}) == 1
        assert not any(place["has_key"] for place in places)
        assert "Slurm: 2 nodes that meet at 127.0.0.1:" in result.stderr, result.stderr
        print("srun on two nodes: they find each other; four ranks with the right places")

        result = slurm.call(*one_a_node, *run, "--", "true", check=False)
        assert result.returncode == 2 and "openssl rand -hex 32" in result.stderr, result.stderr
        result = slurm.call("srun", "-N2", "--ntasks-per-node=2", *run, "--", "true", check=False)
        assert result.returncode == 2 and "SLURM_STEP_NUM_TASKS=4" in result.stderr, result.stderr
        job = slurm.submit(f"{SKYTRAIN} run -- true; echo code $?\n", "-N2")
        text = slurm.finished(job)
        assert "code 2" in text and "srun --ntasks-per-node=1" in text, text
        print("without a key, with two tasks a node and in the script itself: refused, with what to write")

        job = slurm.submit(f"{key}srun --ntasks-per-node=1 {words} usr1 100; echo code $?\n", "-N2")
        ranks("usr1")
        slurm.call("scancel", "--signal=USR1", f"{job}.0")
        saved = ranks("usr1", "-saved")
        assert [notice["reason"] for notice in saved] == ["SIGUSR1"] * 2, saved
        text = slurm.finished(job)
        assert "code 75" in text, text
        nothing_is_left("usr1")
        print("scancel --signal=USR1: both nodes told, both saved, exit code 75")

        job = slurm.submit(f"{key}srun --ntasks-per-node=1 {words} limit 300; echo code $?\n", "-N2", "--time=2",
                           "--signal=USR1@110")
        ranks("limit")
        begin = time.monotonic()
        saved = ranks("limit", "-saved", seconds=130)
        assert [notice["reason"] for notice in saved] == ["SIGUSR1"] * 2, saved
        text = slurm.finished(job)
        assert "code 75" in text, text
        print(f"sbatch --signal=USR1@110 with two minutes: told after {time.monotonic() - begin:.0f} s, exit code 75")

        job = slurm.submit(f"{key}srun --ntasks-per-node=1 {words} term 100 2\n", "-N2")
        ranks("term")
        slurm.call("scancel", job)
        saved = ranks("term", "-saved")
        assert {notice["reason"] for notice in saved} == {"SIGTERM"}, saved
        slurm.finished(job)
        nothing_is_left("term")
        print("scancel: both ranks saved, which took them 2 s, and nothing is left")

        job = slurm.submit(f"{key}srun --ntasks-per-node=1 {words} stubborn 100 1000\n", "-N2")
        ranks("stubborn")
        begin = time.monotonic()
        slurm.call("scancel", job)
        slurm.finished(job)
        nothing_is_left("stubborn")
        seconds = time.monotonic() - begin
        assert seconds >= KILL_WAIT - 2, seconds
        print(f"scancel of a program that does not end: killed after KillWait ({seconds:.0f} s), and nothing is left")

        commit = " ".join(map(str, [*run, "--watch", "out", "--commit-to", folder / "kept", "--", *program]))
        script = f"{key}srun --ntasks-per-node=1 {commit} start-$SLURM_RESTART_COUNT ${{SLURM_RESTART_COUNT:+0}}100\n"
        script = script.replace("${SLURM_RESTART_COUNT:+0}100", "$([ -z $SLURM_RESTART_COUNT ] && echo 100 || echo 0)")
        job = slurm.submit(script, "-N2", "--requeue")
        ranks("start-")
        slurm.call("scontrol", "requeue", job)
        ranks("start-", "-saved")
        wait_for((folder / "kept/state.pt.skytrain.json").exists, "the committed state")
        wait_for(lambda: slurm.state(job) == "PENDING", "the job to be pending again")
        slurm.call("scontrol", "update", f"JobId={job}", "StartTime=now")
        again = ranks("start-1", seconds=180)
        assert {place["SKYTRAIN_RESUME_FROM"] for place in again} == {str(folder / "kept/state.pt")}, again
        slurm.finished(job)
        print("scontrol requeue: saved, committed, and both ranks of the next start resume from it")

        if (ROOT / "build/release/libexec/skytrain-worker").exists():
            judge_training(slurm, folder)


def judge_training(slurm: Cluster, folder: pathlib.Path) -> None:
    def lines():
        return sum(path.read_bytes().count(b"\n") for path in folder.glob("runs/*/*/metrics.jsonl"))

    train = (f"{SKYTRAIN} train {ROOT}/recipes/mnist_simplecnn.yaml --runs {folder}/runs --log-every 1 --set devices=1 "
             "--set elastic.grace=20s --set train.epochs=40")
    saved = []
    for turn in range(2):
        before = lines()
        job = slurm.submit(f"srun -n1 {train}; echo code $?\n", "-N1")
        wait_for(lambda: lines() > before, f"steps of turn {turn}: {slurm.output(job)}")
        slurm.call("scancel", "--signal=USR1", f"{job}.0")
        text = slurm.finished(job)
        assert "code 75" in text and "resume with" in text and ("resuming" in text) == (turn == 1), text
        saved.append(int(re.search(r"saved step (\d+)", text).group(1)))
    assert saved[0] < saved[1], saved
    print(f"skytrain train: scancel --signal=USR1 saves step {saved[0]}, exit code 75; the same command goes on from "
          f"there to step {saved[1]}")


if __name__ == "__main__":
    missing = [name for name in PROGRAMS if not shutil.which(name, path="/usr/sbin:/usr/bin:/sbin")]
    if missing:
        print(f"not judged: {', '.join(missing)} not installed (apt-get install slurmctld slurmd slurm-client munge)")
        sys.exit(0)
    with tempfile.TemporaryDirectory(prefix="skytrain-judge-", ignore_cleanup_errors=True) as temporary:
        place = pathlib.Path(temporary)
        place.chmod(0o755)
        try:
            judge(place)
        except BaseException:
            for log in sorted(place.glob("*.log")) + sorted(place.glob("job-*.out")):
                print(f"--- {log.name}\n{log.read_text()[-3000:]}", file=sys.stderr)
            raise
