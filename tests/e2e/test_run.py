"""`skytrain run`: a foreign program's words, environment, output, end and notices; nothing of it is left behind."""
import json
import os
import pathlib
import re
import signal
import sys
import time

import pytest

from harness import Program, is_running, wait_until

PYTHON = sys.executable
SHOW = "import json, os, sys; print(json.dumps({'argv': sys.argv[1:], 'env': dict(os.environ)}))"


class Job:
    """Programs of a test, each of them Python text, and what they wrote."""

    def __init__(self, place):
        self.place, self.folder = place, place.folder

    def script(self, text, name="program.py"):
        (self.folder / name).write_text("import json, os, pathlib, signal, subprocess, sys, time\n"
                                        "rank = int(os.environ['RANK'])\n"
                                        "def touch(name, text=''):\n"
                                        "    pathlib.Path(name + '.new').write_text(str(text))\n"
                                        "    os.rename(name + '.new', name)\n"
                                        "def wait_for(name):\n"
                                        "    while not os.path.exists(name): time.sleep(0.005)\n" + text)
        return [PYTHON, name]

    def run(self, *flags, text, **options):
        return self.place.run("run", *flags, "--", *self.script(text), **options)

    def start(self, *flags, text, **options):
        return Program(["run", *flags, "--", *self.script(text)], self.folder, **options)

    def wait_for(self, *names):
        for name in names:
            wait_until((self.folder / name).exists, name)
        return [(self.folder / name).read_text() for name in names]


@pytest.fixture
def job(place):
    return Job(place)


def lines_of(text, prefix):
    return [line[len(prefix):] for line in text.splitlines() if line.startswith(prefix)]


def nothing_runs(*pids):
    wait_until(lambda: not any(is_running(int(pid)) for pid in pids), f"the end of {pids}", timeout=20)


# ---------------------------------------------------------------------------------------------------------------------
# words, environment, output

WORDS = ["-h", "--nproc", "9", "--", "--json", "a b", "", "$HOME", "*", "'q'", "数据"]


@pytest.mark.parametrize("mark", [["--"], []], ids=["marked", "unmarked"])
def test_words_are_passed_on_untouched(job, mark):
    result = job.place.run("run", "--nproc", 2, *mark, PYTHON, "-c", SHOW, *WORDS)
    assert result.code == 0, result
    for rank in "01":
        (line,) = lines_of(result.out, f"[{rank}] ")
        assert json.loads(line)["argv"] == WORDS


def test_environment_is_that_of_torchrun(job):
    result = job.place.run("run", "--nproc", 2, "--max-restarts", 4, "--", PYTHON, "-c", SHOW, env={"RANK": "7"})
    assert result.code == 0, result
    ranks = [json.loads(lines_of(result.out, f"[{rank}] ")[0])["env"] for rank in range(2)]
    for rank, env in enumerate(ranks):
        assert env["RANK"] == env["LOCAL_RANK"] == env["ROLE_RANK"] == str(rank)
        assert env["WORLD_SIZE"] == env["LOCAL_WORLD_SIZE"] == env["ROLE_WORLD_SIZE"] == "2"
        assert env["GROUP_RANK"] == "0" and env["GROUP_WORLD_SIZE"] == "1" and env["MASTER_ADDR"] == "127.0.0.1"
        assert env["TORCHELASTIC_RESTART_COUNT"] == "0" and env["TORCHELASTIC_MAX_RESTARTS"] == "4"
        assert env["OMP_NUM_THREADS"] == "1" and "SKYTRAIN_RESUME_FROM" not in env
    assert int(ranks[0]["MASTER_PORT"]) > 1023
    for name in ("MASTER_PORT", "TORCHELASTIC_RUN_ID", "SKYTRAIN_NOTICE_FILE"):
        assert ranks[0][name] == ranks[1][name]
    assert "OMP_NUM_THREADS" in result.err
    assert not pathlib.Path(ranks[0]["SKYTRAIN_NOTICE_FILE"]).parent.exists(), "the temporary folder is removed"


def test_one_rank_has_our_descriptors_and_keeps_its_threads(job):
    text = "print(os.environ.get('OMP_NUM_THREADS'), sys.stdin.read(), file=sys.stderr); sys.stdout.write('no newline')"
    read, write = os.pipe()
    os.write(write, b"input")
    os.close(write)
    result = job.run(text=text, stdin=read, env={"OMP_NUM_THREADS": "3"})
    os.close(read)
    assert (result.code, result.out, result.err) == (0, "no newline", "3 input\n")


def test_lines_are_whole_and_files_hold_them(job):
    text = """
for i in range(300):
    os.write(1, b'x' * 700 + b' %d' % i)
    os.write(1, b'\\n')
    os.write(2, b'y' * 700 + b'\\n')
os.write(1, b'z' * 1_000_000 + b'\\nlast')
"""
    result = job.run("--nproc", 3, "--log-dir", "logs", text=text)
    assert result.code == 0, result
    for rank in range(3):
        out = lines_of(result.out, f"[{rank}] ")
        assert out[:300] == ["x" * 700 + f" {i}" for i in range(300)]
        assert "".join(out[300:-1]) == "z" * 1_000_000 and out[-1] == "last"
        assert lines_of(result.err, f"[{rank}] ") == ["y" * 700] * 300
        assert (job.folder / f"logs/rank-{rank}.log").read_text().count("\n") == 601
    merged = (job.folder / "logs/all.log").read_text().splitlines()
    assert sorted(merged) == sorted(line for line in (result.out + result.err).splitlines() if line.startswith("["))


# ---------------------------------------------------------------------------------------------------------------------
# ends

@pytest.mark.parametrize("end, code", [("sys.exit(3)", 3), ("os._exit(125)", 125), ("os._exit(255)", 255),
                                       ("os.kill(os.getpid(), signal.SIGTERM)", 143),
                                       ("os.kill(os.getpid(), signal.SIGKILL)", 137)])
def test_exit_code_is_that_of_the_program(job, end, code):
    result = job.run(text=end)
    assert result.code == code, result
    assert len(result.err.splitlines()) == 1 and "rank 0" in result.err
    assert (str(code) if code in (3, 125, 255) else "SIG") in result.err


@pytest.mark.parametrize("name, mode, content, says", [
    ("no-such-program", None, "", "there is no such program"), ("./plain", 0o644, "", "is not executable"),
    ("./train.py", 0o644, "", "python3 ./train.py"), ("./script", 0o755, "#!/no/such/interpreter\n", "interpreter"),
    ("./binary", 0o755, "\1\2\3", "Exec format error"), (".", None, "", "there is no such program"),
    ("/", None, "", "is a folder")])
def test_what_cannot_be_started_is_named(job, name, mode, content, says):
    if mode:
        path = job.folder / name
        path.write_text(content)
        path.chmod(mode)
    result = job.place.run("run", "--nproc", 2, "--json", "--", name)
    assert result.code == 5, result
    assert says in result.err and result.summary["error"]["exit_code"] == 5
    assert len([line for line in result.err.splitlines() if line.startswith("skytrain: ") and "ranks" not in line]) == 1


# A crash of one rank ends the others by "connection reset" milliseconds later, and torchrun names all of them.
def test_the_first_rank_that_failed_is_named_with_its_last_lines(job):
    text = """
print('rank', rank, 'is at work', flush=True)
if rank == 1:
    print('the reason', file=sys.stderr, flush=True)
    touch('failing', os.getpid())
    os._exit(3)
wait_for('failing')
pid = int(pathlib.Path('failing').read_text())
while pathlib.Path(f'/proc/{pid}/stat').exists(): pass
os._exit(4)
"""
    result = job.run("--nproc", 3, text=text)
    assert result.code == 3, result
    assert "skytrain: rank 1: exited with code 3 (the first of 3 ranks to fail)" in result.err
    assert "    the reason" in result.err.splitlines(), result.err


def test_when_one_fails_the_others_end_and_stubborn_ones_are_killed(job):
    text = """
if rank == 0:
    signal.signal(signal.SIGTERM, lambda *_: (touch('asked'), sys.exit(0)))
if rank == 1:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
touch(f'pid-{rank}', os.getpid())
if rank == 2:
    wait_for('pid-0'); wait_for('pid-1')
    sys.exit(9)
time.sleep(100)
"""
    begin = time.monotonic()
    result = job.run("--nproc", 3, "--grace", "0.5 s", text=text)
    assert result.code == 9, result
    assert 0.5 <= time.monotonic() - begin < 10
    assert "rank 2" in result.err
    job.wait_for("asked")
    nothing_runs(*job.wait_for("pid-0", "pid-1", "pid-2"))


def test_all_ranks_are_started_again_and_the_budget_is_the_jobs(job):
    text = """
count = os.environ['TORCHELASTIC_RESTART_COUNT']
touch(f'{rank}-{count}', os.environ['MASTER_PORT'] + ' ' + os.environ['TORCHELASTIC_RUN_ID'])
wait_for(f'{1 - rank}-{count}')
if count == '0' and rank == 1: sys.exit(5)
if count == '1' and rank == 0: os.kill(os.getpid(), signal.SIGKILL)
if len(sys.argv) > 1: sys.exit(6)
if count != '2': time.sleep(100)
"""
    result = job.run("--nproc", 2, "--max-restarts", 2, "--json", text=text)
    assert result.code == 0 and result.summary["restarts"] == 2, result
    assert "again (1 of 2)" in result.err and "again (2 of 2)" in result.err and "SIGKILL" in result.err
    places = [job.wait_for(f"0-{count}", f"1-{count}") for count in range(3)]
    assert all(a == b for a, b in places)
    assert len({a.split()[0] for a, _ in places}) == 3 and len({a.split()[1] for a, _ in places}) == 1
    result = job.place.run("run", "--nproc", 2, "--max-restarts", 1, "--", PYTHON, "program.py", "fail")
    assert result.code in (6, 137) and "restarts: 1 of 1" in result.err, result


# ---------------------------------------------------------------------------------------------------------------------
# notices

POLLS = """
signal.signal(signal.SIGTERM, lambda *_: touch(f'term-{rank}'))
signal.signal(signal.SIGUSR1, lambda *_: touch(f'usr1-{rank}'))
signal.signal(signal.SIGINT, lambda *_: touch(f'int-{rank}'))
touch(f'ready-{rank}', os.getpid())
notice = os.environ['SKYTRAIN_NOTICE_FILE']
assert not os.path.exists(notice)
wait_for(notice)
touch(f'notice-{rank}', pathlib.Path(notice).read_text())
"""


@pytest.mark.parametrize("sent", ["SIGTERM", "SIGUSR1"])
@pytest.mark.parametrize("passed", ["TERM", "USR1"])
def test_a_notice_comes_as_signal_and_as_file(job, sent, passed):
    name = passed.lower()
    with job.start("--nproc", 2, "--notice-signal", passed, "--grace", "20 s", "--json",
                   text=POLLS + f"wait_for(f'{name}-{{rank}}'); sys.exit(75 * rank)") as program:
        job.wait_for("ready-0", "ready-1")
        program.signal(getattr(signal, sent))
        result = program.finish()
    assert result.code == 75 and result.summary["status"] == "interrupted", result
    assert "interrupted; the same command goes on" in result.err
    for text in job.wait_for("notice-0", "notice-1"):
        notice = json.loads(text)
        assert notice["reason"] == sent and abs(notice["unix_seconds"] - time.time()) < 60
        assert notice["deadline_unix_seconds"] - notice["unix_seconds"] == pytest.approx(20)
    assert not (job.folder / f"{'usr1' if passed == 'TERM' else 'term'}-0").exists()


def test_a_term_reaches_the_group_and_a_usr1_only_the_rank(job):
    child = "import time; time.sleep(100)"
    text = f"""
child = subprocess.Popen([sys.executable, '-c', {child!r}])
signal.signal(signal.SIGTERM, lambda *_: None)
signal.signal(signal.SIGUSR1, lambda *_: touch('usr1'))
touch('ready')
wait_for(os.environ['SKYTRAIN_NOTICE_FILE'])
if os.environ['WHICH'] == 'USR1':
    wait_for('usr1')
    assert child.poll() is None
else:
    assert child.wait() == -signal.SIGTERM
"""
    for which in ("USR1", "TERM"):
        with job.start("--notice-signal", which, text=text, env={"WHICH": which}) as program:
            job.wait_for("ready")
            program.signal(signal.SIGTERM)
            result = program.finish()
        assert result.code == 75, result
        assert ("left 1 process behind" in result.err) == (which == "USR1"), result
        (job.folder / "ready").unlink()


def test_what_is_left_after_the_grace_is_killed(job):
    with job.start("--nproc", 2, "--grace", "0.4 s", text=POLLS + "time.sleep(100 * rank)") as program:
        pids = job.wait_for("ready-0", "ready-1")
        begin = time.monotonic()
        program.signal(signal.SIGTERM)
        result = program.finish()
    assert 0.4 <= time.monotonic() - begin < 5
    assert result.code == 137, result
    assert "rank 1: was killed by SIGKILL (9): it had not ended within 400 ms" in result.err, result
    nothing_runs(*pids)


def test_a_rank_that_fails_at_a_notice_is_no_clean_interruption_and_not_restarted(job):
    with job.start("--nproc", 2, "--max-restarts", 3, text=POLLS + "sys.exit(7 * rank)") as program:
        job.wait_for("ready-0", "ready-1")
        program.signal(signal.SIGTERM)
        result = program.finish()
    assert result.code == 7 and "again" not in result.err, result


def test_a_program_that_dies_by_the_notice_is_interrupted(job):
    with job.start("--nproc", 2, text="touch(f'ready-{rank}'); time.sleep(100)") as program:
        job.wait_for("ready-0", "ready-1")
        program.signal(signal.SIGTERM)
        assert program.finish().code == 75


def test_a_term_after_a_usr1_does_not_stop_at_once(job):
    text = POLLS + "wait_for('go'); sys.exit(0)"
    with job.start("--grace", "20 s", text=text) as program:
        job.wait_for("ready-0")
        program.signal(signal.SIGUSR1)
        job.wait_for("notice-0")
        program.signal(signal.SIGTERM)
        time.sleep(0.3)
        assert program.process.poll() is None
        (job.folder / "go").touch()
        result = program.finish()
    assert result.code == 75 and "SIGTERM: the notice stands" in result.err, result


def test_the_first_ctrl_c_is_passed_on_once_and_the_second_kills(job):
    text = POLLS + "print('saving', flush=True); time.sleep(100)"
    with job.start("--nproc", 2, "--grace", "0.1 s", text=text) as program:
        pids = job.wait_for("ready-0", "ready-1")
        program.signal(signal.SIGINT)
        assert json.loads(job.wait_for("notice-0")[0])["deadline_unix_seconds"] is None
        job.wait_for("notice-1", "int-0", "int-1")
        time.sleep(0.3)  # longer than the grace: nobody has announced a kill
        assert program.process.poll() is None
        program.signal(signal.SIGINT)
        result = program.finish()
    assert result.code == 130, result
    nothing_runs(*pids)
    assert not (job.folder / "term-0").exists()


@pytest.mark.parametrize("delay", [0, 0.002, 0.005, 0.01, 0.02, 0.04])
def test_a_notice_during_the_start_leaves_nothing(job, delay):
    with job.start("--nproc", 2, text="touch(f'pid-{rank}', os.getpid()); time.sleep(100)") as program:
        time.sleep(delay)
        program.signal(signal.SIGTERM)
        result = program.finish()
    assert result.code in (75, -signal.SIGTERM), result  # before its handlers are there it dies of it
    nothing_runs(*[path.read_text() for path in job.folder.glob("pid-?")])


# ---------------------------------------------------------------------------------------------------------------------
# nothing is left behind

FAMILY = """
def daemon(name):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            touch(name, os.getpid())
            time.sleep(100)
        os._exit(0)
daemon(f'daemon-{rank}')
if os.fork() == 0:
    os.setsid()
    touch(f'session-{rank}', os.getpid())
    time.sleep(100)
    os._exit(0)
touch(f'rank-{rank}', os.getpid())
wait_for(f'daemon-{rank}')
wait_for(f'session-{rank}')
"""
NAMES = [f"{name}-{rank}" for name in ("rank", "daemon", "session") for rank in range(2)]


def children_of(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# torchrun killed by -9 left its ranks behind, and they held the GPU's memory.
def test_kill_9_of_the_agent_leaves_nothing(job):
    text = "touch(f'notice-{rank}', os.environ['SKYTRAIN_NOTICE_FILE'])\n" + FAMILY + "time.sleep(100)"
    with job.start("--nproc", 2, text=text) as program:
        pids = job.wait_for(*NAMES)
        shims = children_of(program.process.pid)
        assert len(shims) == 2
        program.signal(signal.SIGKILL)
        program.process.wait()
        nothing_runs(*pids, *shims)
    assert not pathlib.Path(job.wait_for("notice-0")[0]).parent.exists()


def test_kill_9_of_what_watches_a_rank_is_the_ranks_end_and_leaves_nothing(job):
    with job.start("--nproc", 2, text=FAMILY + "time.sleep(100)") as program:
        pids = job.wait_for(*NAMES)
        os.kill(children_of(program.process.pid)[1], signal.SIGKILL)
        result = program.finish()
    assert result.code == 137 and "the process that watched it was killed" in result.err, result
    nothing_runs(*pids)


def test_what_a_rank_leaves_behind_is_killed_and_told(job):
    begin = time.monotonic()
    result = job.run("--nproc", 2, text=FAMILY)
    assert result.code == 0 and time.monotonic() - begin < 10, result
    for rank in range(2):
        assert re.search(rf"skytrain: rank {rank} left 2 processes behind \(python3.*\): killed", result.err), result
    nothing_runs(*job.wait_for(*NAMES))


def test_what_ends_by_itself_is_no_leftover(job):
    text = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(0.2)'])"
    result = job.run(text=text)
    assert (result.code, result.err) == (0, "")


def is_stuck_in_write(pid):
    """It has used no time of a core for a while."""
    def used():
        return pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[0]
    before = used()
    time.sleep(0.3)
    return used() == before


def test_output_that_nobody_reads_does_not_hold_up_a_notice(job):
    text = POLLS.replace("wait_for(notice)", "while not os.path.exists(notice): print('x' * 10000)")
    with job.start("--nproc", 2, "--grace", "1 s", text=text) as program:
        pids = job.wait_for("ready-0", "ready-1")
        wait_until(lambda: all(is_stuck_in_write(pid) for pid in pids), "all buffers to be full", every=0.1)
        program.signal(signal.SIGTERM)
        nothing_runs(*pids)
        assert program.finish().code == 137


# ---------------------------------------------------------------------------------------------------------------------
# committed checkpoints

SAVES = """
def save(name, text):
    pathlib.Path('out').mkdir(exist_ok=True)
    pathlib.Path('out', name).write_text(text)
"""
WATCH = ["--watch", "out", "--commit-to", "kept", "--keep", 2]


def committed(job):
    names = sorted(path.name for path in (job.folder / "kept").iterdir())
    return [name for name in names if not name.endswith(".skytrain.json")]


def test_complete_checkpoints_are_committed_and_resumed_from(job):
    text = SAVES + """
touch('resumes', os.environ.get('SKYTRAIN_RESUME_FROM', 'nothing'))
for i in range(3):
    save(f'step-{i}.pt', f'state {i}')
    time.sleep(0.01)
save('step-9.pt.tmp', 'not done')
os.symlink('/etc/passwd', 'out/link.pt')
os.makedirs('out/folder/deep'); save('folder/deep/shard', 'of a folder')
"""
    result = job.run(*WATCH, "--json", text=text)
    assert result.code == 0 and job.wait_for("resumes") == ["nothing"], result
    assert committed(job) == ["folder", "step-2.pt"], result
    assert (job.folder / "kept/folder/deep/shard").read_text() == "of a folder"
    manifest = json.loads((job.folder / "kept/step-2.pt.skytrain.json").read_text())
    assert manifest["files"][0]["bytes"] == len("state 2") and len(manifest["files"][0]["xxh128"]) == 32
    assert [os.path.basename(path) for path in result.summary["committed"]] == [
        "step-0.pt", "step-1.pt", "step-2.pt", "folder"]
    resume = "touch('resumes', os.environ.get('SKYTRAIN_RESUME_FROM', 'nothing'))"
    assert job.run(*WATCH, text=resume).code == 0
    assert job.wait_for("resumes") == [str((job.folder / "kept/folder").resolve())]
    (job.folder / "kept/folder/deep/shard").write_text("of a fOlder")
    result = job.run(*WATCH, text=resume)
    assert job.wait_for("resumes") == [str((job.folder / "kept/step-2.pt").resolve())]
    assert "does not match its hash" in result.err, result
    assert committed(job) == ["folder", "step-2.pt"], "what was there at the start is not committed again"


def test_while_it_runs_only_what_is_quiet_and_closed_is_committed(job):
    text = SAVES + """
save('whole.pt', 'whole')
half = open('out/half.pt', 'w'); half.write('half'); half.flush()
wait_for('kept/whole.pt')
wait_for('kept/whole.pt.skytrain.json')
assert not os.path.exists('kept/half.pt')
touch('seen')
if rank == 0 and os.environ['TORCHELASTIC_RESTART_COUNT'] == '0': os._exit(1)
touch('resumes', os.environ['SKYTRAIN_RESUME_FROM'])
half.close()
"""
    # The rank that dies was writing half.pt: nobody knows what is missing of it.
    result = job.run(*WATCH, "--max-restarts", 1, text=text)
    assert result.code == 0, result
    assert job.wait_for("resumes") == [str((job.folder / "kept/whole.pt").resolve())]
    assert "half.pt" not in result.err.split("again (1 of 1)")[0], result


def test_at_a_notice_the_last_checkpoint_is_committed_before_the_end(job):
    text = SAVES + """
signal.signal(signal.SIGTERM, lambda *_: (save('last.pt', 'saved at the notice'), sys.exit(75)))
touch('ready')
time.sleep(100)
"""
    with job.start(*WATCH, text=text) as program:
        job.wait_for("ready")
        program.signal(signal.SIGTERM)
        result = program.finish()
    assert result.code == 75, result
    assert (job.folder / "kept/last.pt").read_text() == "saved at the notice"


def test_folders_that_cannot_work_are_refused(job):
    for watch, to in (("out", "out"), ("out", "out/kept"), ("a/b", "a")):
        result = job.place.run("run", "--watch", watch, "--commit-to", to, "--", "true")
        assert result.code == 2 and "lie in one another" in result.err, result
    assert job.place.run("run", "--watch", "out", "--", "true").code == 2
    with job.start(*WATCH, text="touch('ready'); wait_for('go')") as program:
        job.wait_for("ready")
        result = job.place.run("run", *WATCH, "--", "true")
        assert result.code == 5 and "another skytrain run commits to this folder" in result.err, result
        (job.folder / "go").touch()
        assert program.finish().code == 0
