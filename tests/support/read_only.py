"""Run a program as in a container: every disk is read-only but for one folder, and its uid has no name.

    python -m tests.support.read_only FOLDER UID PROGRAM [ARGUMENT …]

Needs Linux 5.12 and user namespaces; without them it exits with 77.
"""

import ctypes
import os
import sys
from pathlib import Path

MISSING = 77
NEW_NAMESPACE, NEW_USER = 0x0002_0000, 0x1000_0000  # of sched.h
BIND, PRIVATE_BELOW = 0x1000, 0x4_4000  # of sys/mount.h: MS_BIND; MS_PRIVATE | MS_REC
MOUNT_SETATTR, BELOW, READ_ONLY = 442, 0x8000, 1  # of linux/mount.h: AT_RECURSIVE, MOUNT_ATTR_RDONLY
SYSTEM = ctypes.CDLL(None, use_errno=True)


def check(result: int) -> None:
    if result:
        error = OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        sys.stderr.write(f"namespaces are not available: {error.strerror}\n")
        sys.exit(MISSING)


def enter(flags: int, uid: int, gid: int) -> None:
    """Enter a new user namespace in which this user has these ids."""
    outer = os.geteuid(), os.getegid()
    check(SYSTEM.unshare(flags | NEW_USER))
    Path("/proc/self/setgroups").write_text("deny")
    for name, inner, own in (("uid", uid, outer[0]), ("gid", gid, outer[1])):
        Path(f"/proc/self/{name}_map").write_text(f"{inner} {own} 1")


def set_attributes(path: str, flags: int, *, added: int = 0, removed: int = 0) -> None:
    attributes = (ctypes.c_uint64 * 4)(added, removed)
    check(SYSTEM.syscall(MOUNT_SETATTR, -1, path.encode(), flags, attributes, ctypes.sizeof(attributes)))


def close_everything_but(folder: str) -> None:
    """Make all disks read-only in this namespace, apart from the folder."""
    check(SYSTEM.mount(None, b"/", None, PRIVATE_BELOW, None))
    check(SYSTEM.mount(folder.encode(), folder.encode(), None, BIND, None))
    set_attributes("/", BELOW, added=READ_ONLY)
    for writable in (folder, "/proc"):  # the latter for the ids of this process
        set_attributes(writable, 0, removed=READ_ONLY)


if __name__ == "__main__":
    place, number, *command = sys.argv[1:]
    enter(NEW_NAMESPACE, 0, 0)
    close_everything_but(place)
    enter(0, int(number), int(number))
    os.chdir("/")
    os.execv(command[0], command)  # noqa: S606 - ends this program, and its privileges
