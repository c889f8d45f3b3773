"""Places to run a program in that have no Python: a new Debian, or an environment with an empty path."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest

# In a mount namespace of its own: $1 is the root, then the folders that it has at the same paths, `--`, the command.
ENTER = """
root=$1
shift
while [ "$1" != -- ]; do
    mkdir -p "$root$1" && mount --rbind "$1" "$root$1" || exit 1
    shift
done
shift
exec chroot "$root" "$@"
"""


def debian(folder: Path) -> Path:
    """Return the root of a new Debian of the release of this machine; skip the test where none can be made."""
    missing = [tool for tool in ("debootstrap", "unshare", "chroot") if shutil.which(tool) is None]
    if missing or os.geteuid():
        pytest.skip(f"a clean Debian needs root and {', '.join(missing) or 'nothing else'}")
    root = folder / "debian"
    with (folder / "debian.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not root.exists():
            release = next(
                line for line in Path("/etc/os-release").read_text("utf-8").splitlines() if "CODENAME" in line
            )
            command = [
                "debootstrap",
                "--variant=minbase",
                "--include=xz-utils,systemd-standalone-sysusers",
                release.partition("=")[2],
                str(root),
            ]
            made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800)
            if made.returncode:
                shutil.rmtree(root)
                pytest.skip(f"no clean Debian could be made: {made.stdout.splitlines()[-1:]}")
    return root


def inside(root: Path, shared: Sequence[Path]) -> list[str]:
    """Return the beginning of a command that runs in the root, where these folders are at the same paths."""
    enter = ["unshare", "--mount", "--propagation", "private", "sh", "-c", ENTER, "sh", str(root)]
    return [*enter, *map(str, (Path("/proc"), Path("/dev"), *shared)), "--"]
