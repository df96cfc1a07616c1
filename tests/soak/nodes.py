#!/usr/bin/env python3
"""Six hosts that are network namespaces on a bridge: `skytrain run` on all of them, and cables that are pulled.

usage: nodes.py [ROUNDS]          (as root; iproute2)

Each round: a job of six nodes runs to its end; then one in which the cable of a host is pulled, a random one and the
head's by turns. The others name it within the node timeout and a few seconds, and no rank is left on either side. Then
the same with restarts left and the cable put back: the job goes on with all six.
"""
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

SKYTRAIN = pathlib.Path(os.environ.get("SKYTRAIN_BIN", pathlib.Path(__file__).resolve().parents[2] /
                                       "build/release/bin/skytrain"))
HOSTS, TIMEOUT, PATIENCE = 6, 5, 60
PREFIX = f"st{os.getpid() % 10000}"
PROGRAM = """
import os, pathlib, sys, time
rank, count = os.environ['RANK'], os.environ['TORCHELASTIC_RESTART_COUNT']
pathlib.Path(f'{sys.argv[1]}-{count}-{rank}').write_text(f"{os.getpid()} {os.environ['MASTER_ADDR']}")
if sys.argv[2] == 'wait' and count == '0': time.sleep(1000)
"""


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True)


def wait_for(condition, what):
    end = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < end, f"waited {PATIENCE} s for {what}"
        time.sleep(0.02)
    return value


class Network:
    def __enter__(self):
        ip("link", "add", f"{PREFIX}br", "type", "bridge")
        ip("link", "set", f"{PREFIX}br", "up")
        for host in range(HOSTS):
            ip("netns", "add", f"{PREFIX}-{host}")
            ip("link", "add", f"{PREFIX}v{host}", "type", "veth", "peer", "name", "eth0", "netns", f"{PREFIX}-{host}")
            ip("link", "set", f"{PREFIX}v{host}", "master", f"{PREFIX}br", "up")
            ip("-n", f"{PREFIX}-{host}", "addr", "add", f"10.77.0.{host + 1}/24", "dev", "eth0")
            ip("-n", f"{PREFIX}-{host}", "link", "set", "eth0", "up")
            ip("-n", f"{PREFIX}-{host}", "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        for host in range(HOSTS):
            subprocess.run(["ip", "netns", "del", f"{PREFIX}-{host}"], check=False)
        subprocess.run(["ip", "link", "del", f"{PREFIX}br"], check=False)

    def cable(self, host, state):
        ip("link", "set", f"{PREFIX}v{host}", state)


class Job:
    def __init__(self, folder, tag, what, *flags):
        self.folder, self.tag = folder, tag
        words = [SKYTRAIN, "run", "--nodes", HOSTS, "--join", "10.77.0.1:29400", "--nproc", 2, "--node-timeout",
                 f"{TIMEOUT} s", "--grace", "2 s", "--interface", "eth0", *flags, "--", sys.executable, "program.py",
                 tag, what]
        environment = {**os.environ, "SKYTRAIN_JOB_KEY": os.urandom(16).hex()}
        order = list(range(HOSTS))
        random.shuffle(order)
        self.agents = {host: subprocess.Popen(["ip", "netns", "exec", f"{PREFIX}-{host}", *map(str, words)], cwd=folder,
                                              env=environment, text=True, stdout=subprocess.PIPE,
                                              stderr=subprocess.STDOUT) for host in order}

    def ranks(self, count=0):
        paths = [self.folder / f"{self.tag}-{count}-{rank}" for rank in range(2 * HOSTS)]
        wait_for(lambda: all(path.exists() and path.read_text() for path in paths), f"{self.tag}: all ranks")
        texts = [path.read_text().split() for path in paths]
        assert {address for _, address in texts} == {"10.77.0.1"}, texts
        return [int(pid) for pid, _ in texts]

    def finish(self, host):
        return self.agents[host].communicate(timeout=PATIENCE)[0], self.agents[host].returncode

    def end(self):
        for agent in self.agents.values():
            if agent.poll() is None:
                agent.kill()
            agent.wait()


def round_of(network, folder, number):
    job = Job(folder, f"{number}-plain", "end")
    try:
        for host in range(HOSTS):
            text, code = job.finish(host)
            assert code == 0, text
        job.ranks()
    finally:
        job.end()

    lost = 0 if number % 2 else random.randrange(1, HOSTS)
    job = Job(folder, f"{number}-cut", "wait")
    try:
        pids = job.ranks()
        begin = time.monotonic()
        network.cable(lost, "down")
        for host in set(range(HOSTS)) - {lost}:
            text, code = job.finish(host)
            address = rf"10\.77\.0\.{lost + 1}\b"
            assert code == 7 and re.search(rf"node \d+ \(.*{address}.*\): lost: it has said nothing for", text), text
        seconds = time.monotonic() - begin
        assert seconds < TIMEOUT + 12, seconds
        text, code = job.finish(lost)
        assert code == 7, text
        wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids), "the end of all ranks")
    finally:
        job.end()
        network.cable(lost, "up")

    job = Job(folder, f"{number}-back", "wait", "--max-restarts", "1")
    try:
        job.ranks()
        network.cable(lost, "down")
        time.sleep(TIMEOUT + 3)
        network.cable(lost, "up")
        job.ranks(1)
        for host in range(HOSTS):
            text, code = job.finish(host)
            assert code == 0, text
    finally:
        job.end()
        network.cable(lost, "up")
    print(f"round {number}: host {lost} cut off: named after {seconds:.1f} s; with the cable back the job goes on")


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    with tempfile.TemporaryDirectory(prefix="skytrain-soak-") as temporary, Network() as the_network:
        place = pathlib.Path(temporary)
        (place / "program.py").write_text(PROGRAM)
        for i in range(rounds):
            round_of(the_network, place, i)
