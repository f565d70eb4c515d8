"""Nothing that a trial does leaves a mark outside of it, or tells it what it must not know."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import stat
import sys
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jupyter_agent_exec.client import AgentExecClient, Session
from tests.fuzzing import examples
from tests.kernels.trials.attempts import ALONE, ATTEMPTS, PRELUDE, TOGETHER, together
from tests.real_server import real_server

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="trials need Linux")

SECRET = "s3cret-in-environment"
NAMES = ("MY_API_TOKEN", "DB_PASS", "DATABASE_URL", "CHAT_WEBHOOK_URL", "PAT", "DSN")

USERS = """
import asyncio, gc, json, logging, mmap, multiprocessing.shared_memory, os, queue, select, socket
import sqlite3, tempfile, threading, ctypes, weakref, random, signal
import numpy
outside = {outside!r}
users_file = open(outside + "/users.txt", "w"); users_file.write("begun "); users_file.flush()
users_file.write("pending ")
users_reader = open(outside + "/kept.txt", "rb", buffering=0); users_reader.read(2)
users_folder = os.open(outside, os.O_RDONLY)
users_rw = os.open(outside + "/mapped.bin", os.O_RDWR)
users_map = mmap.mmap(users_rw, 4096)
libc_ = ctypes.CDLL(None); libc_.mmap.restype = ctypes.c_void_p
libc_.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
users_read_map_at = libc_.mmap(None, 4096, 1, 1, users_rw, 0)
users_anonymous = mmap.mmap(-1, 4096)
users_shm = multiprocessing.shared_memory.SharedMemory(create=True, size=4096)
users_memmap = numpy.memmap(outside + "/memmap.bin", mode="r+")
users_value = multiprocessing.Value("i", 1)
users_socket, users_peer = socket.socketpair(); users_peer.setblocking(False)
users_pipe_read, users_pipe = os.pipe(); os.set_blocking(users_pipe_read, False)
users_eventfd = os.eventfd(0, os.EFD_NONBLOCK)
users_epoll = select.epoll(); users_epoll.register(users_pipe_read, select.EPOLLIN)
users_db = sqlite3.connect(outside + "/users.db", check_same_thread=False)
users_db.execute("create table t (x)"); users_db.commit()
users_db.execute("insert into t values (1)")
logging.getLogger("users").addHandler(logging.FileHandler(outside + "/users.log"))
users_queue, users_events = queue.Queue(), []
users_loop = asyncio.get_running_loop()
class Finalized:
    def __del__(self, open=open, path=outside + "/finalized"):
        open(path, "w").close()
users_finalized = Finalized()
users_folder_finalizer = tempfile.TemporaryDirectory(dir=outside)
os.environ["MY_SETTING"] = "set later"
users_ticks = 0
async def tick():
    global users_ticks
    while True:
        users_ticks += 1
        await asyncio.sleep(0.01)
users_task = asyncio.create_task(tick())
random.seed(7); numpy.random.seed(7)
def users_hook(): users_events.append("a fork")
os.register_at_fork(
    before=users_hook, after_in_parent=users_hook,
    after_in_child=lambda: open(outside + "/hook.txt", "w").close(),
)
signal.signal(signal.SIGCHLD, lambda *_: users_events.append("a child"))
def drained(read):
    try: return read() not in (b"", None)
    except (BlockingIOError, OSError): return False
def users_state():
    return json.dumps(dict(
        pid=os.getpid(),
        offset=os.lseek(users_reader.fileno(), 0, os.SEEK_CUR),
        map=bytes(users_map[:4]).hex(), anonymous=bytes(users_anonymous[:4]).hex(),
        shm=bytes(users_shm.buf[:4]).hex(), memmap=bytes(users_memmap[:4]).hex(),
        value=users_value.value, socket=drained(lambda: users_peer.recv(9)),
        pipe=drained(lambda: os.read(users_pipe_read, 9)),
        event=drained(lambda: os.eventfd_read(users_eventfd)),
        epoll=len(users_epoll.poll(0)),
        rows=[row[0] for row in users_db.execute("select x from t")],
        in_transaction=users_db.in_transaction,
        queue=users_queue.qsize(), events=list(users_events),
        folder=os.path.isdir(users_folder_finalizer.name),
        random=hash(random.getstate()), numpy=hash(numpy.random.get_state()[1].tobytes()),
        # the server's own look at the kernel's packages makes a subshell, whatever runs
        threads=sorted(each.name for each in threading.enumerate() if "subshell" not in each.name),
        task=users_task.done(), gc=gc.isenabled(), cwd=os.getcwd(),
        temp=tempfile.gettempdir(), token=os.environ.get("MY_API_TOKEN"),
        stdout=type(sys.stdout).__module__ + str("write" in vars(sys.stdout)),
        handlers=[str(signal.getsignal(n)) for n in (2, 14, 15)],
        mask=sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))),
    ))
import signal, sys
"""


@dataclass
class World:
    """A kernel of a user's, and what is around it."""

    session: Session
    kernel: int
    names: dict[str, Any]
    outside: Path
    folders: tuple[Path, ...]
    listeners: tuple[socket.socket, ...]
    pipe: int

    def attempt(self, source: str, timeout: float = 60) -> Any:
        return self.session.run(PRELUDE % self.names + source, trial=True, timeout=timeout)

    def marks(self) -> list[Any]:
        """Return what can be seen from outside: files, and what reached a socket."""
        seen: list[Any] = [os.path.lexists(path) for path in MARKS]
        for folder in self.folders:
            for path in sorted(folder.rglob("*")):
                about = path.lstat()
                seen.append((str(path), about.st_mode, about.st_uid, about.st_size))
                if stat.S_ISREG(about.st_mode):
                    seen.append((path.read_bytes(), about.st_mtime_ns, os.listxattr(path)))
        seen.append(fcntl.ioctl(self.pipe, termios.FIONREAD, bytes(4)))
        for listener in self.listeners:
            try:
                if listener.type == socket.SOCK_STREAM:
                    listener.accept()[0].close()
                else:
                    listener.recv(9)
                seen.append("something came")
            except BlockingIOError:
                pass
        return seen

    def state(self) -> dict[str, Any]:
        """Return what the user would see in the kernel."""
        ran = self.session.run("print(users_state())", raise_on_error=True)
        return dict(json.loads(ran.text))


MARKS = ("/tmp/agent-exec-mark", "/dev/shm/agent-exec-mark")


def listening(family: int, kind: int, address: Any) -> socket.socket:
    made = socket.socket(family, kind)
    made.bind(address)
    made.setblocking(False)
    if kind == socket.SOCK_STREAM:
        made.listen()
    return made


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("w")
    outside = folder / "outside"
    (outside / "folder").mkdir(parents=True)
    for name in ("kept.txt", "second.txt", "mapped.bin", "memmap.bin"):
        (outside / name).write_bytes(b"kept" * 1024)
    tcp = listening(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
    port = tcp.getsockname()[1]
    udp = listening(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", port))
    unix_path = str(folder / "u")
    unix = listening(socket.AF_UNIX, socket.SOCK_STREAM, unix_path)
    dgram = listening(socket.AF_UNIX, socket.SOCK_DGRAM, unix_path + ".dgram")
    abstract = listening(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + unix_path)
    with real_server(folder, environ=dict.fromkeys(NAMES, SECRET)) as server:
        hidden = server.root_dir / ".secret"
        hidden.mkdir()
        (hidden / "key").write_text("a key")
        (server.root_dir / "work").mkdir()
        (server.root_dir / "work" / ".env").write_text("a password")
        (server.root_dir / "within" / ".git").mkdir(parents=True)
        (server.root_dir / "within" / ".env").write_text("a password")
        (server.root_dir / "within" / ".git" / "config").write_text("a password")
        (server.root_dir / "link").symlink_to(outside / "kept.txt")
        (server.root_dir / "notes.txt").write_text("notes")
        pipe = server.root_dir / "pipe"
        os.mkfifo(pipe)
        held = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
        os.write(held, b"kept")
        with (
            AgentExecClient(server.url, server.token) as client,
            client.open_session(agent="tester", cwd="work") as session,
        ):
            session.run(USERS.format(outside=str(outside)), raise_on_error=True)
            kernel = int(session.run("import os; os.getpid()", raise_on_error=True).text)
            names = {
                "outside": str(outside),
                "served": str(server.root_dir),
                "private_key": str(hidden / "key"),
                "history": str(server.history_dir),
                "runtime": server.environ["JUPYTER_RUNTIME_DIR"],
                "kernel": kernel,
                "pipe": str(pipe),
                "port": port,
                "unix": unix_path,
                "shm": 0,
            }
            listeners = (tcp, udp, unix, dgram, abstract)
            folders = (outside, server.root_dir)
            yield World(session, kernel, names, outside, folders, listeners, held)
    os.close(held)
    for listener in listeners:
        listener.close()


SHARED = [name for name in ATTEMPTS if name not in ALONE]
GROUPS = [[name] for name in ALONE] + [
    SHARED[first : first + TOGETHER] for first in range(0, len(SHARED), TOGETHER)
]


@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_nothing_gets_out(world: World, names: list[str]) -> None:
    marks, users = world.marks(), world.state()
    is_alone = names[0] in ALONE
    source = ATTEMPTS[names[0]] % world.names if is_alone else together(names, world.names)
    tried = world.attempt(source)
    assert tried.execution.seal is not None
    assert tried.status == "ok" or is_alone, tried.text
    assert not [line for line in tried.text.splitlines() if line.startswith("LEAK")]
    assert world.marks() == marks
    assert world.state() == users
    os.kill(world.kernel, 0)


def test_there_are_enough_attempts() -> None:
    assert len(ATTEMPTS) >= 250


HARMLESS = (
    *("files: open for appending", "files: make a folder", "files: change the times"),
    *("reads: read outside", "reads: list processes", "reads: read a secret in os.environ"),
    *("processes: signal the kernel", "processes: raw kill", "processes: pidfd_open"),
    *("network: a TCP socket", "network: a UDP socket", "network: a Unix socket"),
    *("network: an abstract socket", "network: raw socketpair"),
    *("inherited: a pipe", "inherited: anonymous shared memory", "inherited: a numpy memmap"),
    "reads: read a secret that has no telling name",
    *("reads: read a pipe", "reads: raw open of a pipe", "reads: list the network's files"),
    *("inherited: an open file", "inherited: a database", "inherited: a thread of the kernel"),
)


@pytest.mark.parametrize("name", HARMLESS)
def test_the_same_attempts_leave_marks_outside_of_a_trial(world: World, name: str) -> None:
    """Else the test above could not fail."""
    marks, users = world.marks(), world.state()
    ran = world.session.run((PRELUDE + ATTEMPTS[name]) % world.names)
    assert "LEAK" in ran.text or world.marks() != marks or world.state() != users


ARGUMENTS = ("kept", "new", "pipe", "folder", "zeros", "words", "kernel", "myself", "far", 1 << 40)
CALLS = """
import ctypes
given = dict(
    kept=kept, new=new, pipe=%(pipe)r.encode(), folder=here, kernel=%(kernel)r, myself=os.getpid(),
    zeros=ctypes.create_string_buffer(4096), far=2 ** 63 - 1,
    words=(ctypes.c_long * 64)(*range(64)),
)
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)  # no call waits for longer
for number, arguments in {calls}:
    call(number, number, *[given.get(each, each) for each in arguments])
"""
calls = st.tuples(
    st.one_of(st.integers(0, 470), st.sampled_from([2, 16, 56, 72, 157, 202, 257, 302, 436, 437])),
    st.lists(st.one_of(st.sampled_from(ARGUMENTS), st.integers(-100, 300)), min_size=6, max_size=6),
)


@examples(short=3)
@given(calls=st.lists(calls, min_size=30, max_size=60))
def test_no_system_calls_get_out(world: World, calls: list[Any]) -> None:
    marks, users = world.marks(), world.state()
    source = CALLS % world.names
    tried = world.attempt(source.replace("{calls}", repr(calls)), timeout=3)
    assert tried.status in ("ok", "error", "timed_out")
    assert world.marks() == marks
    assert world.state() == users
    os.kill(world.kernel, 0)
