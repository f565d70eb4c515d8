"""Attempts of a trial to leave a mark or to reach out, by name. See `test_escapes.py`.

Each is the source of a trial. It has the names of `PRELUDE`, and these folders and files, which
belong to the user: `outside`, `served`, `private_key`. It ends quietly or with any error, which
does not matter: what matters is what can be seen from outside.

Should a seal ever fail, an attempt must do no harm to the machine that runs the tests. So arguments
of dangerous calls are not valid: whether the call was refused shows in its error number.
"""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent

PRELUDE = """
import ctypes, os, sys, signal, struct, mmap, platform
libc = ctypes.CDLL(None, use_errno=True)
is_x86 = platform.machine() == "x86_64"
def call(x86, arm, *arguments):
    number = x86 if is_x86 else arm
    if number is None:
        ctypes.set_errno(38)
        return -1
    wide = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    libc.syscall.restype = ctypes.c_long
    return libc.syscall(ctypes.c_long(number), *wide)
def leak(text):
    "Say something that must not be known."
    print("LEAK", text)
def must_fail(result, what):
    "A call that is refused fails with EPERM or ENOSYS, whatever its arguments."
    if result >= 0 or ctypes.get_errno() not in (1, 38):
        print("LEAK", what)
here = b"%(outside)s"
kept = b"%(outside)s/kept.txt"
new = b"%(outside)s/new.txt"
"""

O_WRONLY, O_CREAT, O_TRUNC = 0o1, 0o100, 0o1000

FILES: dict[str, str] = {
    "open for writing": "open(kept, 'w').write('changed')",
    "open for appending": "open(kept, 'a').write('changed')",
    "open for reading and writing": "open(kept, 'r+').write('changed')",
    "open exclusively": "open(new, 'x')",
    "open without a buffer": "os.write(os.open(kept, os.O_WRONLY), b'changed')",
    "raw open": "call(2, None, kept, 0o1101, 0o600)",
    "raw openat": "call(257, 56, -100, new, 0o101, 0o600)",
    "raw openat that truncates": "call(257, 56, -100, kept, 0o1000, 0)",
    "raw open that truncates for reading": "call(2, None, kept, 0o1000, 0)",
    "raw open that truncates with mode 3": "call(2, None, kept, 0o1003, 0)",
    "raw openat that truncates with mode 3": "call(257, 56, -100, kept, 0o1003, 0)",
    "raw openat with high bits": "call(257, 56, -100, kept, (1 << 40) | 0o1000, 0)",
    "raw openat2": """
        how = struct.pack("QQQ", 0o101, 0o600, 0)
        call(437, 437, -100, new, how, len(how))
    """,
    "raw openat2 that truncates": """
        how = struct.pack("QQQ", 0o1000, 0, 0)
        call(437, 437, -100, kept, how, len(how))
    """,
    "raw creat": "call(85, None, kept, 0o600)",
    "truncate": "os.truncate(kept, 0)",
    "raw truncate": "call(76, 45, kept, 0)",
    "truncate what is open for reading": "os.ftruncate(os.open(kept, os.O_RDONLY), 0)",
    "temporary file there": "os.open(here, os.O_TMPFILE | os.O_RDWR)",
    "link a temporary file there": """
        import tempfile
        file = os.open(tempfile.gettempdir(), os.O_TMPFILE | os.O_RDWR)
        os.link(f"/proc/self/fd/{file}", new, follow_symlinks=True)
    """,
    "remove": "os.remove(kept)",
    "raw unlink": "call(87, None, kept)",
    "raw unlinkat": "call(263, 35, -100, kept, 0)",
    "remove a folder": "os.rmdir(here + b'/folder')",
    "remove a tree": "import shutil; shutil.rmtree(here)",
    "make a folder": "os.mkdir(new)",
    "raw mkdirat": "call(258, 34, -100, new, 0o700)",
    "rename": "os.rename(kept, new)",
    "raw renameat2": "call(316, 276, -100, kept, -100, new, 0)",
    "exchange names": "call(316, 276, -100, kept, -100, here + b'/second.txt', 2)",
    "rename into its own folder": """
        import tempfile
        os.rename(kept, os.path.join(tempfile.gettempdir(), "x").encode())
    """,
    "rename from its own folder": """
        import tempfile
        path = os.path.join(tempfile.gettempdir(), "x")
        open(path, "w").close()
        os.rename(path.encode(), new)
    """,
    "hard link": "os.link(kept, new)",
    "hard link into its own folder, then write": """
        import tempfile
        path = os.path.join(tempfile.gettempdir(), "x").encode()
        os.link(kept, path)
        open(path, "w").write("changed")
    """,
    "symbolic link": "os.symlink(kept, new)",
    "write through a symbolic link of its own": """
        import tempfile
        path = os.path.join(tempfile.gettempdir(), "x").encode()
        os.symlink(kept, path)
        open(path, "w").write("changed")
    """,
    "make a fifo": "os.mkfifo(new)",
    "make a device": "os.mknod(new, 0o20600, os.makedev(1, 3))",
    "make a socket": "os.mknod(new, 0o140600)",
    "make a device in its own folder": """
        import tempfile
        path = os.path.join(tempfile.gettempdir(), "kmem")
        os.mknod(path, 0o20600, os.makedev(1, 1))
        leak("a device")
    """,
    "change the mode": "os.chmod(kept, 0o777)",
    "change the mode of a descriptor": "os.fchmod(os.open(kept, os.O_RDONLY), 0o777)",
    "raw fchmodat": "call(268, 53, -100, kept, 0o777)",
    "raw fchmodat2": "call(452, 452, -100, kept, 0o777, 0)",
    "change the owner": "os.chown(kept, 1234, 1234)",
    "change the owner of a descriptor": "os.fchown(os.open(kept, os.O_RDONLY), 1234, 1234)",
    "raw fchownat": "call(260, 54, -100, kept, 1234, 1234, 0)",
    "change the times": "os.utime(kept, (1, 1))",
    "raw utimes": "call(235, None, kept, struct.pack('qqqq', 1, 0, 1, 0))",
    "raw utime": "call(132, None, kept, struct.pack('qq', 1, 1))",
    "raw utimensat of a descriptor": """
        file = os.open(kept, os.O_RDONLY)
        call(280, 88, file, 0, struct.pack('qqqq', 1, 0, 1, 0), 0)
    """,
    "set an attribute": "os.setxattr(kept, 'user.mark', b'x')",
    "set an attribute of a descriptor": (
        "os.setxattr(os.open(kept, os.O_RDONLY), 'user.mark', b'x')"
    ),
    "remove an attribute": "os.removexattr(kept, 'user.kept')",
    "raw setxattrat": """
        value = ctypes.create_string_buffer(b"x")
        how = struct.pack("QII", ctypes.addressof(value), 1, 0)
        call(463, 463, -100, kept, 0, b"user.mark", how, len(how))
    """,
    "raw file_setattr": "call(469, 469, -100, kept, bytes(32), 32, 0)",
    "set flags of a file": """
        import fcntl
        fcntl.ioctl(os.open(kept, os.O_RDONLY), 0x40086602, struct.pack("l", 0x10))
    """,
    "clone a file": """
        import fcntl
        fcntl.ioctl(os.open(kept, os.O_RDONLY), 0x40049409, 1)
    """,
    "lock a file": """
        import fcntl
        fcntl.flock(os.open(kept, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
        leak("a lock")
    """,
    "lease on a file": """
        import fcntl
        fcntl.fcntl(os.open(kept, os.O_RDONLY), 1024, 0)
        leak("a lease")
    """,
    "watch a folder": "must_fail(call(294, 26, 0), 'inotify')",
    "map a file for writing": "mmap.mmap(os.open(kept, os.O_RDONLY), 4, prot=3)[:4] = b'XXXX'",
    "map a file and make it writable": """
        file = os.open(kept, os.O_RDONLY)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        at = libc.mmap(None, 4096, 1, 1, file, 0)
        if libc.mprotect(ctypes.c_void_p(at), 4096, 3) == 0:
            ctypes.memset(at, 88, 4)
    """,
    "write through /proc/self/fd": """
        file = os.open(kept, os.O_RDONLY)
        open(f"/proc/self/fd/{file}", "w").write("changed")
    """,
    "write through /proc/self/root": "open(b'/proc/self/root' + kept, 'w').write('changed')",
    "write through /proc/self/cwd": "open('/proc/self/cwd/mark', 'w').write('changed')",
    "write in its working folder": "open('mark', 'w').write('changed')",
    "copy a file over another": "import shutil; shutil.copyfile(here + b'/second.txt', kept)",
    "sendfile": "os.sendfile(os.open(kept, os.O_WRONLY), os.open(kept, os.O_RDONLY), 0, 1)",
    "chroot": "os.chroot(here); leak('chroot')",
    "a handle for a file": """
        handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128))
        number = ctypes.c_int()
        must_fail(call(303, 264, -100, kept, handle, ctypes.byref(number), 0), "a handle")
    """,
    "write from threads": """
        import threading
        each = [threading.Thread(target=lambda: open(kept, "w")) for _ in range(4)]
        [one.start() for one in each]; [one.join() for one in each]
    """,
    "write in shared memory": "open('/dev/shm/agent-exec-mark', 'w').write('x')",
    "write in /tmp": "open('/tmp/agent-exec-mark', 'w').write('x')",
}

READS: dict[str, str] = {
    "read a hidden file": "leak(open(%(private_key)r).read())",
    "read a hidden file in the working folder": "leak(open('.env').read())",
    "read a hidden file in a subfolder": "leak(open(%(served)r + '/within/.env').read())",
    "read a file in a hidden folder": "leak(open(%(served)r + '/within/.git/config').read())",
    "read outside": "leak(open(kept).read())",
    "read through a link": "leak(open(%(served)r + '/link').read())",
    "read the record": "leak(os.listdir(%(history)r))",
    "read Jupyter's runtime folder": "leak(os.listdir(%(runtime)r))",
    "read /etc/shadow": "leak(open('/etc/shadow').read())",
    "read the kernel's environment": "leak(open(f'/proc/{%(kernel)r}/environ').read())",
    "read the kernel's memory": "leak(open(f'/proc/{%(kernel)r}/mem', 'rb').read(1))",
    "read the watcher's memory": "leak(open(f'/proc/{os.getppid()}/mem', 'rb').read(1))",
    "read a command line": "leak(open(f'/proc/{%(kernel)r}/cmdline').read())",
    "list processes": "leak(os.listdir('/proc'))",
    "read a secret in os.environ": "leak(os.environ['MY_API_TOKEN'])",
    "read a secret in /proc/self/environ": """
        if b"s3cret-in-environment" in open("/proc/self/environ", "rb").read():
            leak("the environment")
    """,
    "read a secret that has no telling name": """
        names = "DB_PASS", "DATABASE_URL", "CHAT_WEBHOOK_URL", "PAT", "DSN"
        import posix
        [leak(name) for name in names if name in os.environ or name.encode() in posix.environ]
        if os.environ.get("MY_SETTING") or os.getenv("MY_SETTING"): leak("what is set later")
    """,
    "read a secret where the environment was": """
        secret = bytes(reversed(b"tnemnorivne-ni-t3rc3s"))
        for line in open("/proc/self/maps"):
            if "[stack]" in line:
                start, end = (int(each, 16) for each in line.split()[0].split("-"))
                if secret in ctypes.string_at(start, end - start): leak("the environment")
    """,
    "read a secret with getenv": """
        libc.getenv.restype = ctypes.c_char_p
        if libc.getenv(b"MY_API_TOKEN"): leak("the environment")
    """,
    "read a descriptor of the kernel": """
        import select
        for number in range(3, 200):
            try: data = select.select([number], [], [], 0)[0] and os.read(number, 10)
            except OSError: continue
            if data: leak(number)
    """,
    "read through a descriptor's link": """
        for number in range(3, 200):
            path = f"/proc/self/fd/{number}"
            if os.path.lexists(path) and %(outside)r in os.readlink(path): leak(path)
    """,
    "read a pipe": "leak(os.read(os.open(%(pipe)r, os.O_RDONLY | os.O_NONBLOCK), 9))",
    "raw open of a pipe": """
        pipe = call(257, 56, -100, %(pipe)r.encode(), os.O_NONBLOCK, 0)
        if pipe >= 0: leak("a pipe")
    """,
    "read a pipe through /proc": """
        number = os.open(%(pipe)r, os.O_PATH)
        leak(os.read(os.open(f"/proc/self/fd/{number}", os.O_NONBLOCK), 9))
    """,
    "read a pipe in its working folder": """
        os.chdir(os.path.dirname(%(pipe)r))
        leak(os.read(os.open("pipe", os.O_RDONLY | os.O_NONBLOCK), 9))
    """,
    "read a pipe by a name that changes": """
        import ctypes, threading
        name, ends = ctypes.create_string_buffer(256), threading.Event()
        paths = [%(pipe)r.encode(), (%(served)r + "/notes.txt").encode()]
        def change():
            while not ends.is_set():
                for path in paths: ctypes.memmove(name, path + b"\0", len(path) + 1)
        changer = threading.Thread(target=change); changer.start()
        for _ in range(300):
            number = call(257, 56, -100, name, os.O_NONBLOCK, 0)
            if number >= 0 and not os.path.isfile(f"/proc/self/fd/{number}"): leak("a pipe")
            if number >= 0: os.close(number)
        ends.set(); changer.join()
    """,
    "open a pipe with mode 3": "call(257, 56, -100, %(pipe)r.encode(), 3 | os.O_NONBLOCK, 0)",
    "open a device with mode 3": """
        if call(257, 56, -100, b"/dev/ptmx", 3, 0) >= 0: leak("a device")
    """,
    "answer its own calls": """
        import fcntl
        for number in range(3, 400):
            try: fcntl.ioctl(number, 0xC0502100, bytearray(80))
            except OSError: continue
            leak("a listener")
    """,
    "read the network's state": "leak(open('/proc/self/net/unix').read())",
    "read the network's state of a thread": """
        leak(open(f"/proc/self/task/{os.getpid()}/net/unix").read())
    """,
    "list the network's files": "leak(os.listdir('/proc/self/net'))",
    "read its control group": "leak(open('/proc/thread-self/cgroup').read())",
    "list control groups": "leak(os.listdir('/sys/fs/cgroup'))",
    "read the mounts": "leak(open('/proc/self/mountinfo').read())",
    "read the watcher's environment": "leak(open(f'/proc/{os.getppid()}/environ').read())",
    "read the watcher's files through .. ": "leak(open('/proc/../proc/self/status').read())",
    "read a terminal": "leak(open('/dev/tty'))",
    "read the kernel's log": (
        "must_fail(call(103, 116, 3, ctypes.create_string_buffer(64), 64), 'log')"
    ),
    "read a disk": "leak(os.open('/dev/vda', os.O_RDONLY))",
    "read memory of the machine": "leak(os.open('/dev/mem', os.O_RDONLY))",
}

PROCESSES: dict[str, str] = {
    "signal the kernel": "os.kill(%(kernel)r, 0); leak('a signal')",
    "signal the watcher": "os.kill(os.getppid(), 0); leak('a signal')",
    "signal itself": "os.kill(os.getpid(), 0); leak('a signal')",
    "signal its group": "os.killpg(0, 0); leak('a signal')",
    "signal all": "os.kill(-1, 0); leak('a signal')",
    "raw kill": "must_fail(call(62, 129, %(kernel)r, 0), 'kill')",
    "raw tkill": "must_fail(call(200, 130, %(kernel)r, 0), 'tkill')",
    "raw tgkill": "must_fail(call(234, 131, %(kernel)r, %(kernel)r, 0), 'tgkill')",
    "raw rt_sigqueueinfo": (
        "must_fail(call(129, 138, %(kernel)r, 0, bytes(128)), 'rt_sigqueueinfo')"
    ),
    "raw rt_tgsigqueueinfo": (
        "must_fail(call(297, 240, %(kernel)r, %(kernel)r, 0, bytes(128)), 'rt_tgsigqueueinfo')"
    ),
    "pidfd_open": "must_fail(call(434, 434, %(kernel)r, 0), 'pidfd')",
    "pidfd_send_signal": "must_fail(call(424, 424, 3, 0, 0, 0), 'pidfd_send_signal')",
    "pidfd_getfd": "must_fail(call(438, 438, 3, 0, 0), 'pidfd_getfd')",
    "signal by an owner of a descriptor": """
        import fcntl
        fcntl.fcntl(os.pipe()[0], 8, %(kernel)r)
        leak("an owner")
    """,
    "signal by F_SETOWN_EX": """
        import fcntl
        fcntl.fcntl(os.pipe()[0], 15, struct.pack("ii", 1, %(kernel)r))
        leak("an owner")
    """,
    "choose the signal of a descriptor": """
        import fcntl
        fcntl.fcntl(os.pipe()[0], 10, 0)
        leak("a signal")
    """,
    "signal by FIOSETOWN": """
        import fcntl
        fcntl.ioctl(1, 0x8901, struct.pack("i", %(kernel)r))
        leak("an owner")
    """,
    "signal by a timer": "must_fail(call(222, 107, 0, bytes(64), bytes(8)), 'timer_create')",
    "signal by a message queue": "must_fail(call(240, 180, b'q', 0o102, 0o600, 0), 'mq_open')",
    "ptrace the kernel": "must_fail(call(101, 117, 16, %(kernel)r, 0, 0), 'ptrace')",
    "write the kernel's memory": "open(f'/proc/{%(kernel)r}/mem', 'r+b').write(b'x'); leak('mem')",
    "process_vm_readv": "must_fail(call(310, 270, %(kernel)r, 0, 0, 0, 0, 0), 'process_vm_readv')",
    "process_vm_writev": (
        "must_fail(call(311, 271, %(kernel)r, 0, 0, 0, 0, 0), 'process_vm_writev')"
    ),
    "process_madvise": "must_fail(call(440, 440, 3, 0, 0, 4, 0), 'process_madvise')",
    "move who waits for a shared futex": """
        words = (ctypes.c_int * 2)()
        must_fail(call(202, 98, words, 3, 1, 1, ctypes.byref(words, 4), 0), "REQUEUE")
        must_fail(call(202, 98, words, 4, 1, 1, ctypes.byref(words, 4), 0), "CMP_REQUEUE")
    """,
    "wake who waits for a shared futex": """
        words = (ctypes.c_int * 2)()
        must_fail(call(202, 98, words, 5, 1, 1, ctypes.byref(words, 4), 0), "WAKE_OP")
    """,
    "take a lock that is a shared futex": "must_fail(call(202, 98, (ctypes.c_int * 1)(), 8), 'PI')",
    "wait for several futexes": "must_fail(call(449, 449, bytes(24), 1, 0, 0, 0), 'futex_waitv')",
    "wait for a shared futex": """
        word = (ctypes.c_int * 1)(7)
        if call(202, 98, word, 0, 7, bytes(16)) != -1 or ctypes.get_errno() != 11: leak("a wait")
    """,
    "descriptors of a thread's own": "must_fail(call(436, 436, 9999, 9999, 2), 'close_range')",
    "kcmp": "must_fail(call(312, 272, %(kernel)r, %(kernel)r, 0, 0, 0), 'kcmp')",
    "change the kernel's priority": "os.setpriority(os.PRIO_PROCESS, %(kernel)r, 19)",
    "change the kernel's processors": "os.sched_setaffinity(%(kernel)r, {0})",
    "change the kernel's scheduler": (
        "os.sched_setscheduler(%(kernel)r, os.SCHED_IDLE, os.sched_param(0))"
    ),
    "change the kernel's limits": """
        import resource
        resource.prlimit(%(kernel)r, resource.RLIMIT_NOFILE, (7, 7))
    """,
    "raise its own limits": """
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1))
        leak("limits")
    """,
    "change the kernel's io priority": "must_fail(call(251, 30, 1, %(kernel)r, 0), 'ioprio_set')",
    "change the kernel's group": "os.setpgid(%(kernel)r, 0)",
    "leave its session": "os.setsid(); leak('setsid')",
    "outlive the kernel": "must_fail(call(157, 167, 1, 0, 0, 0, 0), 'PR_SET_PDEATHSIG')",
    "take children of others": "must_fail(call(157, 167, 36, 1, 0, 0, 0), 'subreaper')",
    "let others trace it": "must_fail(call(157, 167, 0x59616D61, -1, 0, 0, 0), 'PR_SET_PTRACER')",
    "fork": "os.fork(); leak('fork')",
    "raw fork": "must_fail(call(57, None), 'fork')",
    "raw vfork": "must_fail(call(58, None), 'vfork')",
    "raw clone": "must_fail(call(56, 220, 17, 0, 0, 0, 0), 'clone')",
    "raw clone with a shared memory": "must_fail(call(56, 220, 0x100, 0, 0, 0, 0), 'clone')",
    "raw clone of a sibling": "must_fail(call(56, 220, 0x8000 | 17, 0, 0, 0, 0), 'clone')",
    "raw clone with namespaces": "must_fail(call(56, 220, 0x10000000 | 17, 0, 0, 0, 0), 'clone')",
    "raw clone3": (
        "must_fail(call(435, 435, struct.pack('8Q', 0, 0, 0, 0, 17, 0, 0, 0), 64), 'clone3')"
    ),
    "a program": "import subprocess; subprocess.run(['touch', new])",
    "a shell": "os.system('touch ' + new.decode())",
    "a line with !": "get_ipython().system('touch ' + new.decode())",
    "posix_spawn": "os.posix_spawn('/usr/bin/touch', ['touch', new], {})",
    "exec": "os.execv('/usr/bin/touch', ['touch', new])",
    "raw execveat": "call(322, 281, -100, b'/usr/bin/touch', 0, 0, 0)",
    "exec from memory": "must_fail(call(319, 279, b'x', 0), 'memfd_create')",
    "memfd_secret": "must_fail(call(447, 447, 0), 'memfd_secret')",
    "multiprocessing": """
        import multiprocessing
        process = multiprocessing.get_context("fork").Process(target=print)
        process.start(); leak("a process")
    """,
}

NETWORK: dict[str, str] = {
    "a TCP socket": """
        import socket
        socket.create_connection(("127.0.0.1", %(port)r)).send(b"out")
    """,
    "a UDP socket": """
        import socket
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"out", ("127.0.0.1", %(port)r))
    """,
    "an IPv6 socket": "import socket; socket.socket(socket.AF_INET6); leak('socket')",
    "a raw socket": "import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1); leak('raw')",
    "a packet socket": "import socket; socket.socket(socket.AF_PACKET, 3, 0); leak('packet')",
    "a netlink socket": "import socket; socket.socket(socket.AF_NETLINK, 3, 0); leak('netlink')",
    "a VSOCK": "import socket; socket.socket(40, 1, 0); leak('vsock')",
    "an ALG socket": "import socket; socket.socket(38, 5, 0); leak('alg')",
    "a Unix socket": """
        import socket
        socket.socket(socket.AF_UNIX).connect(%(unix)r)
        leak("unix")
    """,
    "an abstract socket": """
        import socket
        socket.socket(socket.AF_UNIX).connect("\\0" + %(unix)r)
        leak("abstract")
    """,
    "a pair of datagram sockets that sends elsewhere": """
        import socket
        one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        one.sendto(b"out", %(unix)r + ".dgram")
        leak("datagram")
    """,
    "raw socket call": "must_fail(call(41, 198, 2, 1, 0), 'socket')",
    "raw socketpair": "must_fail(call(53, 199, 1, 2, 0, bytes(8)), 'socketpair')",
    "connect the connection to the server anew": """
        for number in range(3, 200):
            must_fail(call(42, 203, number, bytes(16), 16), "connect")
    """,
    "listen on inherited sockets": """
        for number in range(3, 200):
            must_fail(call(50, 201, number, 1), "listen")
    """,
    "pass a descriptor": """
        for number in range(3, 200):
            must_fail(call(46, 211, number, bytes(56), 0), "sendmsg")
    """,
    "send to an address": """
        for number in range(3, 200):
            must_fail(call(44, 206, number, b"x", 1, 0, bytes(16), 16), "sendto")
    """,
    "send to the kernel's sockets": """
        import zmq
        get_ipython().kernel.iopub_socket.send_multipart([b"x"])
    """,
    "a new ZeroMQ socket": """
        import zmq
        zmq.Context().socket(zmq.PUSH).connect("tcp://127.0.0.1:%(port)s")
        leak("zmq")
    """,
    "a request over HTTP": """
        from urllib.request import urlopen
        urlopen("http://127.0.0.1:%(port)s/", timeout=2)
    """,
    "look up a name": "import socket; socket.getaddrinfo('example.org', 80); leak('dns')",
}

MACHINE: dict[str, str] = {
    name: f"must_fail(call({x86}, {arm}, {arguments}), {name!r})"
    for name, x86, arm, arguments in (
        ("io_uring_setup", 425, 425, "1, bytes(120)"),
        ("io_uring_register", 427, 427, "3, 0, 0, 0"),
        ("io_uring_enter", 426, 426, "3, 1, 0, 0, 0, 0"),
        ("add_key", 248, 217, "b'user', b'x', b'y', 1, -2"),
        ("request_key", 249, 218, "b'user', b'x', 0, -2"),
        ("keyctl", 250, 219, "0, -2, 1"),
        ("mount", 165, 40, "b'none', b'/nonexistent', b'tmpfs', 0, 0"),
        ("umount2", 166, 39, "here, 2"),
        ("pivot_root", 155, 41, "here, here"),
        ("open_tree", 428, 428, "-100, here, 1"),
        ("move_mount", 429, 429, "-100, here, -100, here, 0"),
        ("fsopen", 430, 430, "b'tmpfs', 0"),
        ("mount_setattr", 442, 442, "-100, here, 0, bytes(32), 32"),
        ("unshare", 272, 97, "0x10000000"),
        ("unshare of files", 272, 97, "0x400"),
        ("setns", 308, 268, "3, 0"),
        ("bpf", 321, 280, "0, bytes(72), 72"),
        ("perf_event_open", 298, 241, "bytes(128), 0, -1, -1, 0"),
        ("userfaultfd", 323, 282, "1"),
        ("seccomp", 317, 277, "0, 0, 0"),
        ("landlock_create_ruleset", 444, 444, "struct.pack('Q', 1), 8, 0"),
        ("sethostname", 170, 161, "0, -1"),
        ("setdomainname", 171, 162, "0, -1"),
        ("settimeofday", 164, 170, "0, 0"),
        ("clock_settime", 227, 112, "999, 0"),
        ("clock_adjtime", 305, 266, "999, 0"),
        ("reboot", 169, 142, "0, 0, 0, 0"),
        ("kexec_load", 246, 104, "0, 0, 0, -1"),
        ("init_module", 175, 105, "0, 0, b''"),
        ("finit_module", 313, 273, "3, b'', 0"),
        ("delete_module", 176, 106, "b'x', 0"),
        ("swapon", 167, 224, "b'/nonexistent', 0"),
        ("quotactl", 179, 60, "0, 0, 0, 0"),
        ("acct", 163, 89, "b'/nonexistent'"),
        ("syncfs", 306, 267, "-1"),
        ("setuid", 105, 146, "65534"),
        ("setresuid", 117, 147, "65534, 65534, 65534"),
        ("setgroups", 116, 159, "0, 0"),
        ("capset", 126, 91, "bytes(8), bytes(24)"),
        ("personality", 135, 92, "0x40000"),
        ("shmget", 29, 194, "0x5EA1, 4096, 0o1600"),
        ("shmat", 30, 196, "%(shm)r, 0, 0"),
        ("semget", 64, 190, "0x5EA1, 1, 0o1600"),
        ("msgget", 68, 186, "0x5EA1, 0o1600"),
        ("fanotify_init", 300, 262, "0, 0"),
        ("ioperm", 173, None, "-1, 1, 1"),
        ("iopl", 172, None, "99"),
        ("modify_ldt", 154, None, "99, 0, 0"),
        ("a call of the future", 600, 600, "0"),
        ("x32's getpid", 0x40000000 + 39, None, ""),
        ("x32's open", 0x40000000 + 2, None, "kept, 0o1101, 0o600"),
        ("x32's socket", 0x40000000 + 41, None, "2, 1, 0"),
        ("x32's execve", 0x40000000 + 520, None, "b'/usr/bin/touch', 0, 0"),
    )
}
MACHINE["i386's calls"] = """
    if is_x86:  # mov eax, 20 (getpid); int 0x80; ret
        code = mmap.mmap(-1, 4096, prot=7)
        code.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))
        at = ctypes.addressof(ctypes.c_char.from_buffer(code))
        leak(ctypes.CFUNCTYPE(ctypes.c_int)(at)())
"""
MACHINE["code made by mprotect"] = """
    if is_x86:  # mov eax, 57 (fork); syscall; ret
        code = mmap.mmap(-1, 4096, prot=3)
        code.write(bytes([0xB8, 57, 0, 0, 0, 0x0F, 0x05, 0xC3]))
        at = ctypes.addressof(ctypes.c_char.from_buffer(code))
        libc.mprotect(ctypes.c_void_p(at), 4096, 5)
        if ctypes.CFUNCTYPE(ctypes.c_int)(at)() != -1:  # -EPERM, which sets no errno
            leak("fork by machine code")
"""

INHERITED: dict[str, str] = {
    # The names of what the user had before: see USERS in test_escapes.py.
    "an open file": "users_file.write('changed'); users_file.flush()",
    "an open file's descriptor": "os.write(users_file.fileno(), b'changed')",
    "an open file's offset": "os.lseek(users_reader.fileno(), 0, 0)",
    "reading an open file": "leak(users_reader.read(1))",
    "an open file through /proc": "open(f'/proc/self/fd/{users_file.fileno()}', 'w').write('x')",
    "an open folder": "os.open('dir-mark', os.O_CREAT | os.O_WRONLY, dir_fd=users_folder)",
    "a mapped file": "users_map[:4] = b'XXXX'; users_map.flush()",
    "a mapped file, made writable": """
        at = ctypes.addressof(ctypes.c_char.from_buffer(users_map))
        libc.mprotect(ctypes.c_void_p(at), 4096, 3)
        ctypes.memset(at, 88, 4)
    """,
    "a mapped file's duplicate": """
        at = ctypes.addressof(ctypes.c_char.from_buffer(users_map))
        libc.mremap.restype = ctypes.c_void_p
        other = libc.mremap(ctypes.c_void_p(at), 0, 4096, 1)
        if other not in (None, 2 ** 64 - 1):
            ctypes.memset(other, 88, 4)
    """,
    "a file mapped for reading, made writable": """
        at = users_read_map_at
        if libc.mprotect(ctypes.c_void_p(at), 4096, 3) == 0:
            ctypes.memset(at, 88, 4)
    """,
    "anonymous shared memory": "users_anonymous[:4] = b'XXXX'",
    "shared memory with a name": "users_shm.buf[:4] = b'XXXX'",
    "a numpy memmap": "users_memmap[:4] = 88; users_memmap.flush()",
    "a multiprocessing value": "users_value.value = 88",
    "a socket": "users_socket.send(b'out')",
    "a socket's shutdown": "users_socket.shutdown(2)",
    "a pipe": "os.write(users_pipe, b'out')",
    "an event": "os.eventfd_write(users_eventfd, 88)",
    "an epoll": """
        import select
        users_epoll.unregister(users_pipe_read)
    """,
    "a database": "users_db.execute('insert into t values (88)'); users_db.commit()",
    "a database's rollback": "users_db.rollback()",
    "a logger": "import logging; logging.getLogger('users').error('changed')",
    "IPython's history": """
        shell = get_ipython()
        shell.history_manager.enabled = True
        shell.history_manager.store_inputs(9999, "mark", "mark")
        shell.history_manager.writeout_cache()
    """,
    "a message of the kernel": """
        from ipykernel.comm import Comm
        Comm(target_name="mark", data={"mark": 1})
    """,
    "the original send": """
        session = get_ipython().kernel.session
        type(session).send(session, get_ipython().kernel.iopub_socket, "stream",
                           {"name": "stdout", "text": "mark"})
    """,
    "the original stream": (
        "type(sys.stdout).write(sys.stdout, 'mark'); type(sys.stdout).flush(sys.stdout)"
    ),
    "end the kernel": "get_ipython().kernel.do_shutdown(False)",
    "exit": "exit()",
    "end the process": "os._exit(3)",
    "raise SystemExit in a thread": """
        import threading, _thread
        threading.Thread(target=_thread.interrupt_main).start()
    """,
    "at the end": """
        import atexit
        atexit.register(lambda: open(new, "w"))
        sys.exit()
    """,
    "as it is deleted": """
        class Mark:
            def __del__(self, open=open, path=new):
                open(path, "w")
        mark = Mark()
        del mark
        import gc; gc.collect()
    """,
    "as the user's object is deleted": "del users_finalized; import gc; gc.collect()",
    "later, by an alarm": """
        signal.signal(signal.SIGALRM, lambda *_: open(new, "w"))
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        signal.pause()
    """,
    "asyncio of the kernel": """
        import asyncio
        users_loop.call_soon_threadsafe(users_events.append, "mark")
    """,
    "a thread of the kernel": "users_queue.put('mark')",
    "the kernel's finalizers": "users_folder_finalizer.cleanup()",
}

ATTEMPTS = {
    f"{kind}: {name}": dedent(source).strip()
    for kind, table in (
        ("files", FILES),
        ("reads", READS),
        ("processes", PROCESSES),
        ("network", NETWORK),
        ("machine", MACHINE),
        ("inherited", INHERITED),
    )
    for name, source in table.items()
}

ALONE = (
    *("machine: i386's calls", "inherited: exit", "inherited: end the process"),
    *("inherited: at the end", "inherited: raise SystemExit in a thread"),
    *("inherited: later, by an alarm", "processes: raw clone with a shared memory"),
    *("network: send to the kernel's sockets", "network: a new ZeroMQ socket"),
)
"""Attempts that end their trial, or may disturb those after them."""

TOGETHER = 48
"""How many of the others share a trial: a trial costs much more than an attempt."""


def together(names: list[str], given: Mapping[str, object]) -> str:
    """Return the source that makes several attempts, each whatever becomes of those before."""
    sources = {name: ATTEMPTS[name] % given for name in names}
    return (
        f"for name, source in {sources!r}.items():\n"
        "    try:\n"
        "        exec(source, {**globals(), 'leak': lambda text: print('LEAK', name, text)})\n"
        "    except BaseException as error:\n"
        "        print(name, '->', type(error).__name__)\n"
    )
