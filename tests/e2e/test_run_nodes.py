"""`skytrain run` on several machines: agents on loopback addresses, each a machine of its own to the others."""
import json
import os
import pathlib
import random
import re
import signal
import socket
import sys
import time

import pytest

from harness import Program, is_running, wait_until

PYTHON = sys.executable
KEY = "5e5c2a4b9d7f4e0b8c1d"
HELPERS = """import json, os, pathlib, signal, sys, time
rank, count = int(os.environ['RANK']), os.environ['TORCHELASTIC_RESTART_COUNT']
node = int(os.environ['GROUP_RANK'])
def touch(name, text=''):
    pathlib.Path(name + '.new').write_text(str(text))
    os.rename(name + '.new', name)
def wait_for(name):
    while not os.path.exists(name): time.sleep(0.005)
"""


def free_port(host="127.0.0.1"):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        while True:
            try:
                port = random.randrange(20000, 32000)
                probe.bind((host, port))
                return port
            except OSError:
                pass


class Nodes:
    """Agents of one job in one folder; whatever is left of them is killed at the end."""

    def __init__(self, place, host="127.0.0.1"):
        self.place, self.folder, self.programs = place, place.folder, []
        self.use(host)

    def use(self, host):
        self.join = f"[{host}]:{free_port(host)}" if ":" in host else f"{host}:{free_port(host)}"

    def script(self, text, name="program.py"):
        (self.folder / name).write_text(HELPERS + text)
        return [PYTHON, name]

    def start(self, *flags, command, nodes=2, join=None, key=KEY, **options):
        program = Program(["run", "--nodes", nodes, "--join", join or self.join, *flags, "--", *command], self.folder,
                          env={"SKYTRAIN_JOB_KEY": key} if key else None, **options)
        self.programs.append(program)
        return program

    def start_all(self, text, *flags, nodes=2, **options):
        """Node 0 first, so that it is the head."""
        command = self.script(text)
        programs = [self.start(*flags, command=command, nodes=nodes, **options)]
        port = int(self.join.rsplit(":", 1)[1])
        host = self.join.rsplit(":", 1)[0].strip("[]")
        wait_until(lambda: listens(host, port), f"a head at {self.join}")
        return programs + [self.start("--node-rank", i, *flags, command=command, nodes=nodes, **options)
                           for i in range(1, nodes)]

    def wait_for(self, *names):
        for name in names:
            wait_until((self.folder / name).exists, name)
        return [(self.folder / name).read_text() for name in names]

    def finish(self):
        return [program.finish() for program in self.programs]


def listens(host, port):
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        return probe.connect_ex((host, port)) == 0


@pytest.fixture
def nodes(place):
    nodes = Nodes(place)
    yield nodes
    for program in nodes.programs:
        program.__exit__()


def nothing_runs(*pids):
    wait_until(lambda: not any(is_running(int(pid)) for pid in pids), f"the end of {pids}", timeout=20)


# ---------------------------------------------------------------------------------------------------------------------
# joining

@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "::1"])
def test_ranks_have_the_environment_that_torchrun_gives(nodes, host):
    nodes.use(host)
    text = "print(json.dumps(dict(os.environ)))"
    command = nodes.script(text)
    for ranks in (2, 1, 3):
        nodes.start("--nproc", ranks, command=command, nodes=3)
    results = nodes.finish()
    assert [result.code for result in results] == [0, 0, 0], results
    ranks = {}
    for result in results:
        for number, line in re.findall(r"^\[(\d+)\] (.*)$", result.out, re.MULTILINE):
            ranks[int(number)] = json.loads(line)
    assert sorted(ranks) == list(range(6))
    groups = [[env for env in ranks.values() if env["GROUP_RANK"] == str(group)] for group in range(3)]
    assert sorted(map(len, groups)) == [1, 2, 3]
    first = 0
    for number, group in enumerate(groups):
        for local, env in enumerate(sorted(group, key=lambda env: int(env["RANK"]))):
            assert env["RANK"] == env["ROLE_RANK"] == str(first + local)
            assert env["LOCAL_RANK"] == str(local) and env["LOCAL_WORLD_SIZE"] == str(len(group))
            assert env["WORLD_SIZE"] == env["ROLE_WORLD_SIZE"] == "6" and env["GROUP_WORLD_SIZE"] == "3"
            assert env["MASTER_ADDR"] == host and "SKYTRAIN_JOB_KEY" not in env
        first += len(group)
    for name in ("MASTER_PORT", "TORCHELASTIC_RUN_ID"):
        assert len({env[name] for env in ranks.values()}) == 1
    for result in results:
        assert KEY not in result.out + result.err


def test_numbers_that_are_asked_for_are_kept(nodes):
    command = nodes.script("touch(f'{node}-is-{sys.argv[1]}')") + ["x"]
    for number in (2, 1, 0):
        nodes.start("--node-rank", number, "--log-dir", f"logs", command=command, nodes=3)
    results = nodes.finish()
    assert [result.code for result in results] == [0, 0, 0], results
    for number, result in zip((2, 1, 0), results):
        assert f"node {number} of 3" in result.err
        assert (nodes.folder / f"logs/node-{number}/rank-{number}.log").exists()


def test_another_key_is_refused_on_both_sides_and_the_head_goes_on_waiting(nodes):
    command = nodes.script("pass")
    head = nodes.start("--node-rank", 0, command=command)
    stranger = nodes.start("--node-rank", 1, command=command, key=KEY + "x")
    result = stranger.finish()
    assert result.code == 2 and len(result.err.splitlines()) == 2, result
    assert "the head has another job key" in result.err
    good = nodes.start("--node-rank", 1, command=command)
    assert good.finish().code == 0
    result = head.finish()
    assert result.code == 0 and result.err.count("its job key is another one") == 1, result


def test_a_key_file_of_mode_0600_is_taken_and_one_that_others_may_read_is_refused(nodes):
    file = nodes.folder / "key"
    file.write_text(KEY + "\n")
    file.chmod(0o640)
    command = nodes.script("pass")
    result = nodes.start("--job-key-file", file, command=command, key=None).finish()
    assert result.code == 2 and f"chmod 600 {file}" in result.err and KEY not in result.err, result
    file.chmod(0o600)
    first = nodes.start("--job-key-file", file, command=command, key="not the one in the file")
    second = nodes.start(command=command)
    assert (first.finish().code, second.finish().code) == (0, 0)


@pytest.mark.parametrize("key, says", [(None, "openssl rand -hex 32"), ("short", "too short")])
def test_no_key_or_a_short_one_is_refused(nodes, key, says, monkeypatch):
    monkeypatch.delenv("SKYTRAIN_JOB_KEY", raising=False)
    result = nodes.start(command=["true"], key=key).finish()
    assert result.code == 2 and says in result.err, result


def test_another_command_number_or_count_is_refused_by_name(nodes):
    head = nodes.start("--node-rank", 0, command=["true"])
    for flags, command, nodes_there, says in (([], ["false"], 2, "it runs another command"),
                                              ([], ["true"], 3, "--nodes is 3 there and 2 at the head")):
        result = nodes.start("--node-rank", 1, *flags, command=command, nodes=nodes_there).finish()
        assert result.code == 2 and says in result.err, result
    assert nodes.start("--node-rank", 1, command=["true"]).finish().code == 0
    result = head.finish()
    assert result.code == 0 and "another command" in result.err and "--nodes is 3" in result.err, result


def test_what_is_no_skytrain_run_is_named(nodes):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        program = nodes.start(command=["true"], join=f"127.0.0.1:{other.getsockname()[1]}")
        peer, _ = other.accept()
        with peer:
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            result = program.finish()
    assert result.code == 5 and "what answers there is no skytrain run" in result.err, result


def test_who_is_missing_is_said_and_the_wait_ends(nodes):
    result = nodes.start("--join-timeout", "1 s", "--node-rank", 0, command=["true"], nodes=3).finish()
    assert result.code == 5 and "2 of 3 nodes did not join within 1.0 s" in result.err, result
    result = nodes.start("--join-timeout", "0.5 s", "--node-rank", 1, command=["true"], nodes=3).finish()
    assert result.code == 5 and "no head answered within 500 ms" in result.err, result


def test_a_signal_ends_the_wait(nodes):
    for number in (0, 1):
        program = nodes.start("--node-rank", number, command=["true"], nodes=3)
        if number == 0:
            wait_until(lambda: listens("127.0.0.1", int(nodes.join.rsplit(":")[1])), "the head")
    time.sleep(0.2)
    nodes.programs[1].signal(signal.SIGTERM)
    assert nodes.programs[1].finish().code == 75
    nodes.programs[0].signal(signal.SIGTERM)
    assert nodes.programs[0].finish().code == 75


# ---------------------------------------------------------------------------------------------------------------------
# ends

def test_a_rank_that_fails_is_named_on_all_nodes_and_the_others_are_stopped(nodes):
    text = """
touch(f'pid-{rank}', os.getpid())
if rank == 3:
    for other in range(4): wait_for(f'pid-{other}')
    print('the reason', file=sys.stderr)
    sys.exit(9)
time.sleep(100)
"""
    begin = time.monotonic()
    nodes.start_all(text, "--nproc", 2)
    results = nodes.finish()
    assert time.monotonic() - begin < 20
    for result in results:
        assert result.code == 9 and re.search(r"rank 3 \(node 1, .*\): exited with code 9", result.err), result
        assert "the reason" in result.err and "the first of 4 ranks" in result.err, result
    nothing_runs(*nodes.wait_for("pid-0", "pid-1", "pid-2", "pid-3"))


# The first one by time is named, though the one that fails because of it may be the first that the head hears of.
def test_the_first_of_two_that_fail_is_named(nodes):
    text = """
touch(f'pid-{rank}', os.getpid())
if rank == 1:
    wait_for('pid-0')
    os._exit(3)
wait_for('pid-1')
pid = int(pathlib.Path('pid-1').read_text())
while pathlib.Path(f'/proc/{pid}/stat').exists(): pass
os._exit(4)
"""
    nodes.start_all(text)
    for result in nodes.finish():
        assert result.code == 3 and "rank 1 (node 1" in result.err, result


def test_a_program_that_cannot_be_started_on_one_node_ends_the_job(nodes):
    (nodes.folder / "a").mkdir()
    (nodes.folder / "a/program").write_text("#!/bin/sh\nexec sleep 100\n")
    (nodes.folder / "a/program").chmod(0o755)
    (nodes.folder / "b").mkdir()
    (nodes.folder / "b/program").write_text("#!/no/such\n")
    (nodes.folder / "b/program").chmod(0o755)
    for number, folder in enumerate("ab"):
        program = Program(["run", "--nodes", 2, "--join", nodes.join, "--node-rank", number, "--max-restarts", 3, "--",
                           "./program"], nodes.folder / folder, env={"SKYTRAIN_JOB_KEY": KEY})
        nodes.programs.append(program)
    for result in nodes.finish():
        assert result.code == 5 and "node 1" in result.err and "no such file" in result.err.lower(), result


def test_all_are_started_again_within_one_budget(nodes):
    text = """
touch(f'{rank}-{count}', os.environ['MASTER_PORT'] + ' ' + os.environ['TORCHELASTIC_RUN_ID'])
wait_for(f'{1 - rank}-{count}')
if count == '0' and rank == 1: sys.exit(5)
if count == '1' and rank == 0: os.kill(os.getpid(), signal.SIGKILL)
if count != '2': time.sleep(100)
"""
    nodes.start_all(text, "--max-restarts", 2, "--json")
    results = nodes.finish()
    for number, result in enumerate(results):
        assert result.code == 0 and result.summary["restarts"] == 2, result
        assert result.summary["node_rank"] == number, "each has its number again"
    places = [nodes.wait_for(f"0-{count}", f"1-{count}") for count in range(3)]
    assert all(a == b for a, b in places)
    assert len({a.split()[0] for a, _ in places}) == 3 and len({a.split()[1] for a, _ in places}) == 1


def test_the_budget_ends(nodes):
    nodes.start_all("sys.exit(6 if node == 1 else 0)", "--max-restarts", 1)
    for result in nodes.finish():
        assert result.code == 6 and "restarts: 1 of 1" in result.err, result


def test_only_the_head_commits_and_all_resume_from_it(nodes):
    text = """
resume = os.environ.get('SKYTRAIN_RESUME_FROM')
touch(f'resumed-{rank}-{count}', resume)
if count == '0':
    if rank == 0:
        pathlib.Path('out/a.tmp').write_text('state')
        os.rename('out/a.tmp', 'out/a.pt')
        wait_for('kept/a.pt')
        sys.exit(5)
    time.sleep(100)
"""
    (nodes.folder / "out").mkdir()
    nodes.start_all(text, "--max-restarts", 1, "--watch", "out", "--commit-to", "kept")
    assert [result.code for result in nodes.finish()] == [0, 0]
    assert nodes.wait_for("resumed-0-0", "resumed-1-0") == ["None", "None"]
    assert nodes.wait_for("resumed-0-1", "resumed-1-1") == [str(nodes.folder.resolve() / "kept/a.pt")] * 2


# ---------------------------------------------------------------------------------------------------------------------
# notices

POLLS = """
signal.signal(signal.SIGTERM, lambda *_: touch(f'term-{rank}'))
signal.signal(signal.SIGINT, lambda *_: touch(f'int-{rank}'))
touch(f'ready-{rank}', os.getpid())
notice = os.environ['SKYTRAIN_NOTICE_FILE']
wait_for(notice)
touch(f'notice-{rank}', pathlib.Path(notice).read_text())
"""


@pytest.mark.parametrize("where", [0, 1, 2])
def test_a_notice_on_one_node_reaches_all(nodes, where):
    nodes.start_all(POLLS + "wait_for(f'term-{rank}'); sys.exit(75)", "--grace", "20 s", nodes=3)
    nodes.wait_for("ready-0", "ready-1", "ready-2")
    nodes.programs[where].signal(signal.SIGTERM)
    for number, result in enumerate(nodes.finish()):
        assert result.code == 75, result
        assert ("on another node" in result.err) == (number != where), result
    for text in nodes.wait_for("notice-0", "notice-1", "notice-2"):
        notice = json.loads(text)
        assert notice["reason"] == "SIGTERM"
        assert 18 < notice["deadline_unix_seconds"] - notice["unix_seconds"] <= 20.001


def test_the_earliest_deadline_counts(nodes):
    command = nodes.script(POLLS + "time.sleep(100)")
    nodes.start("--node-rank", 0, "--grace", "60 s", command=command)
    nodes.start("--node-rank", 1, "--grace", "0.5 s", command=command)
    pids = nodes.wait_for("ready-0", "ready-1")
    begin = time.monotonic()
    nodes.programs[0].signal(signal.SIGTERM)
    nodes.wait_for("notice-1")
    nodes.programs[1].signal(signal.SIGTERM)
    for result in nodes.finish():
        assert result.code == 137, result
    assert 0.5 < time.monotonic() - begin < 15
    nothing_runs(*pids)


def test_ctrl_c_twice_on_one_node_kills_all(nodes):
    nodes.start_all(POLLS + "time.sleep(100)")
    pids = nodes.wait_for("ready-0", "ready-1")
    nodes.programs[1].signal(signal.SIGINT)
    assert json.loads(nodes.wait_for("notice-0", "notice-1")[0])["deadline_unix_seconds"] is None
    time.sleep(0.2)
    nodes.programs[1].signal(signal.SIGINT)
    for result in nodes.finish():
        assert result.code == 130, result
    nothing_runs(*pids)


# ---------------------------------------------------------------------------------------------------------------------
# losses

def test_kill_9_of_an_agent_ends_its_ranks_and_the_job_at_once(nodes):
    nodes.start_all("touch(f'pid-{rank}', os.getpid()); time.sleep(100)", nodes=3)
    pids = nodes.wait_for("pid-0", "pid-1", "pid-2")
    begin = time.monotonic()
    nodes.programs[1].signal(signal.SIGKILL)
    for program in (nodes.programs[0], nodes.programs[2]):
        result = program.finish()
        assert result.code == 7 and re.search(r"node 1 \(.*\): lost: ", result.err), result
    assert time.monotonic() - begin < 10
    nothing_runs(*pids)


def test_kill_9_of_the_head_ends_the_job_at_once(nodes):
    nodes.start_all("touch(f'pid-{rank}', os.getpid()); time.sleep(100)")
    pids = nodes.wait_for("pid-0", "pid-1")
    nodes.programs[0].signal(signal.SIGKILL)
    result = nodes.programs[1].finish()
    assert result.code == 7 and "node 0 (the head" in result.err, result
    nothing_runs(*pids)


@pytest.mark.parametrize("lost", [0, 1])
def test_a_node_that_comes_again_takes_its_place(nodes, lost):
    text = """
touch(f'pid-{rank}-{count}', os.getpid())
if count == '0': time.sleep(100)
wait_for(f'pid-{1 - rank}-{count}')
"""
    nodes.start_all(text, "--max-restarts", 3, "--json")
    nodes.wait_for("pid-0-0", "pid-1-0")
    nodes.programs[lost].signal(signal.SIGKILL)
    nodes.start("--node-rank", lost, "--max-restarts", 3, "--json", command=[PYTHON, "program.py"])
    results = [program.finish() for program in nodes.programs if program is not nodes.programs[lost]]
    for result in results:
        assert result.code == 0 and result.summary["restarts"] == 1, result


def test_a_node_that_says_nothing_is_lost_after_the_timeout(nodes):
    nodes.start_all("touch(f'pid-{rank}', os.getpid()); time.sleep(100)", "--node-timeout", "3 s")
    pids = nodes.wait_for("pid-0", "pid-1")
    time.sleep(1.5)
    begin = time.monotonic()
    nodes.programs[1].signal(signal.SIGSTOP)
    result = nodes.programs[0].finish()
    assert 1.5 < time.monotonic() - begin < 12
    assert result.code == 7 and "it has said nothing for 3.0 s" in result.err, result
    nodes.programs[1].signal(signal.SIGCONT)
    assert nodes.programs[1].finish().code == 7
    nothing_runs(*pids)
