"""Isolated kernels: what code in them cannot do, tried by code in them.

Each way is tried under a real server: without bubblewrap as whoever runs the tests, and with it as
an ordinary user, for root's kernels are not left to it.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import psutil
import pytest

from jupyter_agent_exec.client import Session
from jupyter_agent_exec.errors import (
    AgentExecError,
    InvalidRequest,
    IsolationUnavailable,
    TrialUnavailable,
)
from jupyter_agent_exec.isolation.sandbox import (
    MASKED,
    RESERVED_IDS,
    IsolationLimits,
    Sandbox,
    argv,
)
from jupyter_agent_exec.kernels.folder import Folder
from tests.isolation.isolation_server import (
    CANARY,
    SOON,
    IsolationServer,
    failed,
    isolation_server,
    prefix_of,
    server_process,
    value,
)
from tests.real_server import TOKEN

PROCESSES = 100
LIMITS = (
    "--AgentExecApp.isolated_memory_bytes=3000000000",
    f"--AgentExecApp.isolated_processes={PROCESSES}",
    "--AgentExecApp.isolated_disk_bytes=50000000",
)


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="kernels are isolated on Linux")


@pytest.fixture(scope="module", params=["unshare", "bubblewrap"])
def here(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[IsolationServer]:
    folder, prefix = tmp_path_factory.mktemp("isolation"), prefix_of(request.param)
    with isolation_server(folder, request.param, *LIMITS, prefix=prefix) as opened:
        yield opened


@pytest.fixture(scope="module")
def isolated(here: IsolationServer) -> Iterator[Session]:
    """Open a session that tests share which leave nothing in its kernel."""
    with here.client.open_session("tester", isolated=True) as session:
        yield session


# -- what it sees ----------------------------------------------------------------------------------


def test_a_session_says_that_its_kernel_is_isolated(
    here: IsolationServer, isolated: Session
) -> None:
    assert isolated.info.target.isolated
    assert here.client.session(isolated.id).info.target.isolated
    first = value(isolated, "found = open('/proc/1/cmdline').read().split('\\0')")
    assert {"bubblewrap": "confined", "unshare": "unshare"}[here.way] in first


def test_a_trial_is_refused_because_an_isolated_kernel_cannot_be_copied(isolated: Session) -> None:
    with pytest.raises(TrialUnavailable, match="isolated kernel"):
        isolated.run("1", trial=True)


def test_no_file_of_server_account_or_other_sessions_is_there(
    here: IsolationServer, isolated: Session
) -> None:
    with here.client.open_session("tester", isolated=True) as other:
        path = value(other, f"open('kept', 'w').write({CANARY!r}); import os", "os.getcwd()")
        assert (Path(path) / "kept").read_text() == CANARY
        wanted = [*here.outside(), path]
        assert all(Path(each).exists() for each in wanted)
        found = value(isolated, f"import os; found = [p for p in {wanted} if os.path.exists(p)]")
    assert found == []


def test_no_secret_is_in_any_file_that_can_be_read(
    here: IsolationServer, isolated: Session
) -> None:
    secrets = [CANARY, TOKEN]
    found = value(
        isolated,
        f"""
        import os, sys
        found, read, pruned = [], 0, ('/usr', '/proc', '/dev', sys.prefix, sys.base_prefix)
        for folder, folders, files in os.walk('/'):
            folders[:] = [f for f in folders if os.path.join(folder, f) not in pruned]
            for name in files:
                path = os.path.join(folder, name)
                try:
                    text = open(path, 'rb').read()
                except OSError:
                    continue
                read += 1
                found += [path for secret in {secrets} if secret.encode() in text]
        for process in filter(str.isdigit, os.listdir('/proc')):
            try:
                text = open(f'/proc/{{process}}/environ', 'rb').read()
            except OSError:
                continue
            found += [process for secret in {secrets} if secret.encode() in text]
        """.replace("\n        ", "\n"),
        "{'found': found, 'read': read}",
    )
    assert found["read"] > 10
    assert found["found"] == []


def test_it_reads_nothing_of_how_the_machine_was_started_or_of_its_keys(isolated: Session) -> None:
    source = f"""
found = []
for name in {_there(MASKED)}:
    try:
        found.append(open(f'/proc/{{name}}').read())
    except PermissionError:  # bubblewrap lets nobody open the device that is in its place
        found.append('')
"""
    assert set(value(isolated, source)) == {""}


def _there(names: Sequence[str]) -> list[str]:
    return [name for name in names if Path("/proc", name).exists()]


def test_its_environment_is_what_is_on_the_list(isolated: Session) -> None:
    environ = value(isolated, "import os; found = dict(os.environ)")
    assert not [name for name in environ if name.startswith(("JUPYTER", "JPY", "AGENT"))]
    assert not [name for name in environ if "PROXY" in name.upper() or "PASSWORD" in name]
    assert environ["HOME"] == "/home/agent"


def test_it_sees_no_process_but_its_own_and_can_end_none(
    here: IsolationServer, isolated: Session
) -> None:
    server = str(server_process(here).pid)
    source = """
import os
found = {p: open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc') if p.isdigit()}
"""
    seen = value(isolated, source)
    assert 1 <= len(seen) <= 4
    assert not [line for line in seen.values() if "announcing_server" in line]
    if server not in seen:
        assert "ProcessLookupError" in failed(isolated, f"import os; os.kill({server}, 0)")
    assert server_process(here).is_running()
    assert value(isolated, "os.kill(1, 9)", "1 + 1") == 2  # the namespace's first is not for it


def test_it_looks_into_no_process_but_its_own(isolated: Session) -> None:
    source = """
import ctypes, os, signal, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

class Piece(ctypes.Structure):
    _fields_ = [('base', ctypes.c_void_p), ('bytes', ctypes.c_size_t)]

def opened(path, flags):
    os.close(os.open(path, flags))

def called(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), '')

def looked_into(pid):
    here = ctypes.create_string_buffer(16)
    piece = Piece(ctypes.addressof(here), 16)
    pieces = ctypes.byref(piece), ctypes.c_ulong(1)
    deeds = {
        'attach': lambda: called(libc.ptrace(16, pid, None, None)),
        'seize': lambda: called(libc.ptrace(0x4206, pid, None, None)),
        # The addresses are its own as well, for it was forked from the same program.
        'read': lambda: called(libc.process_vm_readv(ctypes.c_int(pid), *pieces, *pieces, 0)),
        'write': lambda: called(libc.process_vm_writev(ctypes.c_int(pid), *pieces, *pieces, 0)),
        'file': lambda: called(libc.syscall(438, os.pidfd_open(pid), 0, 0)),
        'mem': lambda: opened(f'/proc/{pid}/mem', os.O_RDWR),
        'environ': lambda: opened(f'/proc/{pid}/environ', os.O_RDONLY),
        'maps': lambda: opened(f'/proc/{pid}/maps', os.O_RDONLY),
        'folder': lambda: os.listdir(f'/proc/{pid}/cwd/'),
        'root': lambda: os.listdir(f'/proc/{pid}/root/'),
        'files': lambda: os.readlink(f'/proc/{pid}/fd/0'),
    }
    done = []
    for name, deed in deeds.items():
        try:
            deed()
        except OSError as error:
            if error.errno not in (1, 13):
                done.append(f'{name}: {error}')
        else:
            done.append(name)
    return done

child = os.fork()
if child == 0:
    while True:
        signal.pause()
found = {'first': looked_into(1), 'child': looked_into(child)}
os.kill(child, 9)
"""
    looked = value(isolated, source)
    assert looked["first"] == []
    assert {"attach", "read", "file", "mem", "files"} <= set(looked["child"])  # it can be done


def test_it_has_no_file_open_but_its_own(here: IsolationServer, isolated: Session) -> None:
    source = """
import os
found = []
for fd in os.listdir('/proc/self/fd'):
    try:
        found.append(os.readlink(f'/proc/self/fd/{fd}'))
    except OSError:
        pass
"""
    opened = [path for path in value(isolated, source) if path.startswith("/")]
    assert "/dev/null" in opened
    theirs = ("/dev/", "/proc/", "/home/agent/", f"{here.temporary}/agent-exec-kernel-")
    assert [path for path in opened if not path.startswith(theirs)] == []


# -- whom it reaches -------------------------------------------------------------------------------


def test_it_reaches_no_server_by_any_kind_of_socket(
    here: IsolationServer, isolated: Session
) -> None:
    port = urlsplit(here.server.url).port
    with socket.socket(socket.AF_UNIX) as listening, socket.socket(socket.AF_UNIX) as on_disk:
        name = f"\0{CANARY}-{os.getpid()}"
        listening.bind(name)
        listening.listen()
        path = here.folder / "socket"
        on_disk.bind(str(path))
        on_disk.listen()
        source = f"""
import socket
def reach(family, address):
    try:
        with socket.socket(family) as s:
            s.settimeout(5)
            s.connect(address)
            return 'reached'
    except OSError as error:
        return type(error).__name__
found = [
    reach(socket.AF_INET, ('127.0.0.1', {port})),
    reach(socket.AF_INET, ('192.0.2.1', 80)),
    reach(socket.AF_UNIX, {name!r}),
    reach(socket.AF_UNIX, {str(path)!r}),
    *(reach(socket.AF_UNIX, each) for each in ('/run/docker.sock', '/var/run/docker.sock')),
    *(reach(family, (2, {port})) for family in [socket.AF_VSOCK]),
]
"""
        reached = value(isolated, source)
        path.unlink()
    assert "reached" not in reached, reached
    assert here.client.status().version  # which was there to be reached
    assert failed(isolated, "import socket; socket.socket(socket.AF_VSOCK)").startswith("OSError")


def test_its_own_programs_may_talk_to_each_other(isolated: Session) -> None:
    source = """
import socket
with socket.create_server(('127.0.0.1', 0)) as listening:
    with socket.create_connection(listening.getsockname()) as other:
        found = other.getpeername()[0]
import multiprocessing
with multiprocessing.Pool(1) as pool:
    found = [found, pool.map(abs, [-1])]
"""
    assert value(isolated, source) == ["127.0.0.1", [1]]


# -- what it may do --------------------------------------------------------------------------------


def test_it_writes_nowhere_but_in_its_folder(here: IsolationServer, isolated: Session) -> None:
    places = ["/", "/usr", "/etc", "/dev", "/run", sys.prefix, str(here.temporary), "/tmp", "/home"]
    source = f"""
import os
found = []
for place in {places}:
    try:
        open(os.path.join(place, {CANARY!r}), 'w').close()
    except OSError:
        continue
    found.append(place)
open(os.path.expanduser('~/x'), 'w').close()
open('mine', 'w').close()
"""
    written = value(isolated, source)
    assert set(written) <= {"/tmp", str(here.temporary)}  # in memory, and gone with it
    assert not [place for place in places if (Path(place) / CANARY).exists()]
    own = Path(value(isolated, "import os", "os.getcwd()"))
    assert [each.name for each in own.iterdir()] == ["mine"]


def test_it_cannot_take_on_rights(here: IsolationServer, isolated: Session) -> None:
    status = value(isolated, "found = open('/proc/self/status').read()")
    told = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert {told[name] for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (told["NoNewPrivs"], told["Seccomp"]) == ("1", "2")
    calls = """
import json, subprocess, sys
calls = '''
import ctypes
libc = ctypes.CDLL(None)
print([libc.unshare(0x10000000), libc.mount(b'x', b'/tmp', b'tmpfs', 0, None),
       libc.syscall(425, 1, 0), libc.umount2(b'/proc', 2)])
'''  # in a process of one thread, which alone could make a user namespace
found = json.loads(subprocess.check_output([sys.executable, '-c', calls]))
"""
    assert value(isolated, calls) == [-1, -1, -1, -1]
    if here.way == "unshare":
        assert "OSError" in failed(isolated, "open('/proc/sys/kernel/core_pattern', 'r+')")


SETS_ID = """
import ctypes, os, stat, struct
libc = ctypes.CDLL(None, use_errno=True)
open('plain', 'w').close()
file, here = os.open('plain', os.O_RDWR), os.open('.', os.O_RDONLY)
x86 = os.uname().machine == 'x86_64'
CHMOD, CREAT, OPEN, MKNOD = 90, 85, 2, 133
FCHMOD, FCHMODAT, OPENAT, MKNODAT = (91, 268, 257, 259) if x86 else (52, 53, 56, 33)
AT, W = -100, os.O_CREAT | os.O_WRONLY
found, names = {}, []

def tried(name, number, *arguments):
    left = libc.syscall(number, *arguments)
    found[name] = ctypes.get_errno() if left < 0 else 0

for bits in (0o4755, 0o2755, 0o6755):
    for name, old, arguments in (
        ('chmod', CHMOD, (b'plain', bits)), ('creat', CREAT, (b'made-creat', bits)),
        ('open', OPEN, (b'made-open', W, bits)),
        ('mknod', MKNOD, (b'made-mknod', 0o100000 | bits, 0)),
    ):
        if x86:
            tried(f'{name} {bits:o}', old, *arguments)
    tried(f'fchmod {bits:o}', FCHMOD, file, bits)
    tried(f'fchmodat {bits:o}', FCHMODAT, AT, b'plain', bits)
    tried(f'fchmodat2 {bits:o}', 452, AT, b'plain', bits, 0)
    tried(f'openat {bits:o}', OPENAT, AT, b'made-openat', W, bits)
    high = ctypes.c_long(bits | 1 << 32)
    tried(f'openat high {bits:o}', OPENAT, AT, b'made-high', W, high)
    tried(f'tmpfile {bits:o}', OPENAT, AT, b'.', os.O_TMPFILE | os.O_RDWR, bits)
    tried(f'mknodat {bits:o}', MKNODAT, AT, b'made-mknodat', 0o100000 | bits, 0)
    how = ctypes.create_string_buffer(struct.pack('=QQQ', W, bits, 0), 24)
    tried(f'openat2 {bits:o}', 437, AT, b'made-openat2', how, 24)
refused = dict(found)
found.clear()
tried('open', OPENAT, AT, b'plain', os.O_RDWR, 0o7777)  # no file is made, so this is no mode
os.chmod('plain', 0o1755)
os.fchmod(file, 0o700)
os.mkdir('folder', 0o755)
with_id = [name for name in os.listdir('.') if os.stat(name).st_mode & 0o6000]
"""


def test_no_file_that_it_leaves_runs_as_the_account(isolated: Session) -> None:
    told = value(isolated, SETS_ID, "[refused, found, with_id]")
    assert {name: code for name, code in told[0].items() if code not in (1, 38)} == {}
    assert {name.split()[0] for name, code in told[0].items() if code == 38} <= {
        "openat2",
        "fchmodat2",  # before Linux 6.6
    }
    assert told[1:] == [{"open": 0}, []]


def test_memory_files_and_processes_are_bounded(here: IsolationServer) -> None:
    with here.client.open_session("tester", isolated=True) as session:
        assert failed(session, "x = bytearray(4_000_000_000)").startswith("MemoryError")
        large = "open({!r}, 'wb').write(bytes(60_000_000))"
        assert "OSError: [Errno 27]" in failed(session, large.format("large"))
        assert "OSError: [Errno 2" in failed(session, large.format("/tmp/large"))
        if here.way == "bubblewrap" and os.geteuid() == 0:
            return  # no limit on processes holds for root, who is this ordinary user
        told = value(session, FORKS, "[len(found), refused]")
        assert PROCESSES // 2 < told[0] < PROCESSES
        assert told[1] == errno.EAGAIN


FORKS = """
import os, signal
found, refused = [], None
try:
    for _ in range(600):
        pid = os.fork()
        if pid == 0:
            signal.pause()
        found.append(pid)
except OSError as error:
    refused = error.errno
for pid in found:
    os.kill(pid, 9)
for pid in found:
    os.waitpid(pid, 0)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a limit on its processes holds for a user")
@pytest.mark.parametrize("has_cgroup", [True, False])
def test_the_limit_on_roots_processes_holds_also_after_ids_were_used_up(
    has_cgroup: bool, tmp_path: Path
) -> None:
    most = 60
    sandbox = Sandbox(IsolationLimits(memory_bytes=0, cpu_seconds=0, processes=most, disk_bytes=0))
    files = sandbox.files()
    try:
        if has_cgroup and files.cgroup is None:
            pytest.skip("no control group with the controller pids can be made here")
        twice = (
            f"for _ in range(2):\n{textwrap.indent(FORKS, '    ')}    print(len(found), refused)"
        )
        command = [sys.executable, "-I", "-S", "-c", twice]
        plan = sandbox.plan(files, Folder(tmp_path, ()), command)
        plan = plan if has_cgroup else replace(plan, cgroup=None)
        ran = subprocess.run(
            argv("unshare", plan),
            cwd=plan.cwd,
            capture_output=True,
            text=True,
            check=False,
            timeout=SOON,
        )
    finally:
        files.remove()
    if has_cgroup:
        assert ran.stdout == f"{most - 1} {errno.EAGAIN}\n" * 2, ran.stderr
        assert files.cgroup is not None
        assert not files.cgroup.exists()
        return
    counts = [tuple(map(int, line.split())) for line in ran.stdout.splitlines()]
    assert len(counts) == 2, ran.stderr
    for forked, refused in counts:
        assert most - 1 <= forked < most + RESERVED_IDS
        assert refused == errno.EAGAIN


# -- what goes on as with any kernel ---------------------------------------------------------------


def test_it_is_interrupted_and_keeps_its_variables(here: IsolationServer) -> None:
    with here.client.open_session("tester", isolated=True) as session:
        assert session.run("kept = 7").ok
        endless = session.run("print('begun')\nwhile True: pass", timeout=2)
        assert endless.status == "timed_out"
        assert value(session, "kept += 1", "kept") == 8


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import os; os._exit(3)", "exited with code 3"),
        ("import os; os.kill(os.getpid(), 9)", "SIGKILL"),
        ("import ctypes; ctypes.string_at(0)", "SIGSEGV"),
    ],
)
def test_its_death_is_told_and_the_next_kernel_is_isolated_too(
    here: IsolationServer, source: str, told: str
) -> None:
    with here.client.open_session("tester", isolated=True) as session:
        assert session.run("open('kept', 'w').close()").ok
        died = session.run(source)
        assert died.status == "kernel_died"
        assert told in died.text
        again = session.run("import os; print(os.listdir('.'), os.path.exists('/etc/shadow'))")
        assert again.execution.kernel.restarted
        assert "['kept'] False" in again.text


def test_a_restart_gives_another_that_is_isolated(here: IsolationServer) -> None:
    with here.client.open_session("tester", isolated=True) as session:
        assert session.run("x = 1").ok
        session.restart()
        assert "NameError" in failed(session, "x")
        assert value(session, "import os", "os.path.exists('/etc/shadow')") is False


def test_tables_and_plots_work(isolated: Session) -> None:
    result = isolated.run(
        "import pandas, matplotlib.pyplot as plt\n"
        "plt.plot([1, 2]); plt.show()\n"
        "pandas.DataFrame({'a': [1]})"
    )
    assert result.ok, result.text
    assert [image.suffix for image in result.images] == [".png"]


def test_jupyters_own_restart_leaves_it_isolated(here: IsolationServer) -> None:
    with here.client.open_session("tester", isolated=True) as session:
        assert session.run("x = 1").ok
        kernel = here.client.session(session.id).info.kernel
        assert kernel is not None
        answered = httpx2.post(
            f"{here.server.url}api/kernels/{kernel.id}/restart",
            headers={"Authorization": f"token {TOKEN}"},
            timeout=SOON,
        )
        assert answered.status_code == 200, answered.text
        assert value(session, "import os", "os.path.exists('/etc/shadow')") is False


# -- two of them, and none -------------------------------------------------------------------------


def test_two_share_nothing(here: IsolationServer) -> None:
    with (
        here.client.open_session("one", isolated=True) as one,
        here.client.open_session("two", isolated=True) as two,
    ):
        places = ["/tmp/x", "/dev/shm/x", "/home/agent/x"]
        source = f"import socket, os\nfor p in {places}: open(p, 'w').close()\n"
        source += f"s = socket.socket(socket.AF_UNIX); s.bind('\\0{CANARY}'); s.listen()"
        assert one.run(source).ok
        found = value(two, f"import os; found = [p for p in {places} if os.path.exists(p)]")
        assert found == []
        connect = f"import socket; socket.socket(socket.AF_UNIX).connect('\\0{CANARY}')"
        assert failed(two, connect).startswith("ConnectionRefusedError")
        folders = [value(each, "import os", "os.getcwd()") for each in (one, two)]
        assert folders[0] != folders[1]
        assert value(two, f"import os; found = os.path.exists({folders[0]!r})") is False


def test_a_warm_kernel_is_for_sessions_that_are_not_isolated(here: IsolationServer) -> None:
    def sees_all(isolated: bool) -> bool:
        with here.client.open_session("tester", isolated=isolated) as session:
            seen: bool = value(
                session, "import os", f"os.path.exists({str(here.folder / 'outside')!r})"
            )
            return seen

    assert [sees_all(isolated) for isolated in (False, True, False)] == [True, False, True]


def test_closing_leaves_no_process_mount_or_folder(here: IsolationServer) -> None:
    before = set(here.temporary.iterdir())
    with here.client.open_session("tester", isolated=True) as session:
        source = "import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True)"
        assert session.run(source).ok
        made = set(here.temporary.iterdir()) - before
        assert len(made) == 2  # the session's, and its kernel's
        groups = [group for path in made for group in Path("/sys/fs/cgroup").rglob(path.name)]
        started = [
            process
            for process in server_process(here).children(recursive=True)
            if process.name() == "sleep"
        ]
        assert len(started) == 1
    _, left = psutil.wait_procs(started, timeout=SOON)
    assert left == []
    assert set(here.temporary.iterdir()) == before
    assert not [group for group in groups if group.exists()]
    assert not [
        line for line in Path("/proc/mounts").read_text().splitlines() if "agent-ex" in line
    ]


def test_they_end_with_the_server(tmp_path: Path) -> None:
    with isolation_server(tmp_path, "unshare") as here:
        session = here.client.open_session("tester", isolated=True)
        assert session.run("1").ok
        server = server_process(here)
        kernels = server.children(recursive=True)
        assert kernels
        server.send_signal(signal.SIGKILL)
        _, left = psutil.wait_procs(kernels, timeout=SOON)
        assert left == []


# -- where it works --------------------------------------------------------------------------------


def test_it_writes_in_the_folder_that_was_asked_for_and_no_other(here: IsolationServer) -> None:
    for name in ("work", "other"):
        (here.server.root_dir / name).mkdir()
    (here.server.root_dir / "work" / "data").write_text("here")
    with here.client.open_session("tester", isolated=True, cwd="work") as session:
        assert value(session, "open('made', 'w').write('x')", "open('data').read()") == "here"
        assert "FileNotFoundError" in failed(session, "import os; os.listdir('../other')")
    assert (here.server.root_dir / "work" / "made").read_text() == "x"


def test_a_folder_with_the_servers_own_is_refused(tmp_path: Path) -> None:
    with isolation_server(
        tmp_path, "unshare", data=tmp_path / "root" / "notebooks" / "data"
    ) as here:
        (here.server.root_dir / "notebooks").mkdir(exist_ok=True)
        for cwd in ("", "notebooks"):
            with pytest.raises(AgentExecError, match=r"target\.cwd") as refused:
                here.client.open_session("tester", isolated=True, cwd=cwd)
            assert refused.value.code == InvalidRequest.code


def test_a_folder_with_what_others_run_or_are_shown_is_refused(tmp_path: Path) -> None:
    """It could be replaced: below its own folder a kernel may move whatever it likes."""
    root = tmp_path / "root"
    spec = {"argv": [str(root / "tools/env/bin/python"), "-m", "ipykernel_launcher"]}
    kernel = tmp_path / "data" / "kernels" / "below" / "kernel.json"
    readable = f"--AgentExecApp.isolated_readable={root / 'all/deep/data'}"
    with isolation_server(tmp_path, "unshare", readable) as here:
        for folder in ("tools/env/bin", "tools/env/lib", "all/deep/data"):
            (root / folder).mkdir(parents=True)
        (root / "tools" / "env" / "bin" / "python").symlink_to(sys.executable)
        kernel.parent.mkdir(parents=True)
        kernel.write_text(json.dumps({**spec, "display_name": "Below", "language": "python"}))
        for name, cwd in (
            *(("below", cwd) for cwd in ("tools", "tools/env", "tools/env/lib")),
            *(("python3", cwd) for cwd in ("", "all", "all/deep")),
        ):
            with pytest.raises(AgentExecError, match=r"target\.cwd") as refused:
                here.client.open_session("tester", isolated=True, cwd=cwd, kernel_name=name)
            assert refused.value.code == InvalidRequest.code, cwd
        with here.client.open_session("tester", isolated=True, cwd="tools") as session:
            assert session.run("1").ok


# -- what the operator decides ---------------------------------------------------------------------


def test_always_isolates_every_scratch_kernel_and_off_none(tmp_path: Path) -> None:
    for name in ("always", "off"):
        (tmp_path / name).mkdir()
    with (
        isolation_server(tmp_path / "always", "unshare", "--AgentExecApp.isolation=always") as here,
        here.client.open_session("tester") as session,
    ):
        assert session.info.target.isolated
        assert value(session, "import os", "os.path.exists('/etc/shadow')") is False
    with isolation_server(tmp_path / "off", "unshare", "--AgentExecApp.isolation=off") as here:
        with pytest.raises(AgentExecError, match="disabled") as refused:
            here.client.open_session("tester", isolated=True)
        assert refused.value.code == IsolationUnavailable.code


def test_where_namespaces_are_missing_it_is_refused_with_what_to_do(tmp_path: Path) -> None:
    # bubblewrap is not used for root; as an ordinary user it is not found.
    with isolation_server(tmp_path, "bubblewrap") as here:
        if os.geteuid() != 0 and shutil.which("bwrap") is not None:
            pytest.skip("bubblewrap works here")
        with pytest.raises(AgentExecError, match="Tried bubblewrap") as no:
            here.client.open_session("tester", isolated=True)
        assert no.value.code == IsolationUnavailable.code
        assert "install" in str(no.value)
        assert list(here.temporary.iterdir()) == []
        with here.client.open_session("tester") as session:
            assert session.run("1").ok
