"""`packaging/build deb`: the package installs, serves as its unit says, upgrades, and goes away."""

import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging import clean
from tests.packaging.installed import Installed

pytestmark = [pytest.mark.long, pytest.mark.only_on("sqlite")]

AS_SERVICE = "setpriv", "--reuid", "musicsvc", "--regid", "musicsvc", "--init-groups"
SETTINGS = Path("etc/musicsvc/config.toml")
DATA = Path("var/lib/musicsvc")


@pytest.fixture
def package(build: Callable[[str], Path]) -> Path:
    (package,) = build("deb").glob("musicsvc_*.deb")
    return package


@pytest.fixture
def root(tmp_path: Path, folder_of_run: Path) -> Path:
    """Return a clean Debian to change."""
    root = tmp_path / "root"
    subprocess.run(["cp", "-a", clean.debian(folder_of_run), root], check=True)
    return root


def _dpkg(root: Path, *arguments: str | Path) -> None:
    command = ["dpkg", f"--root={root}", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr


def test_the_package_is_installed_serves_is_upgraded_removed_and_purged(
    tmp_path: Path, root: Path, package: Path
) -> None:
    _dpkg(root, "--install", package)
    database = root / DATA / "musicsvc.db"
    assert (root / DATA).stat().st_mode & 0o777 == 0o700
    assert database.owner() != "root"
    _serve(tmp_path, root)
    before = database.stat().st_ino
    (root / SETTINGS).write_text((root / SETTINGS).read_text("utf-8") + "# mine\n", "utf-8")
    _dpkg(root, "--install", package)
    _serve(tmp_path, root)
    _dpkg(root, "--remove", "musicsvc")
    assert not (root / "usr/bin/musicsvc").is_symlink()
    assert not (root / "usr/lib/musicsvc").exists()
    assert (root / SETTINGS).read_text("utf-8").endswith("# mine\n")
    assert database.stat().st_ino == before
    _dpkg(root, "--purge", "musicsvc")
    assert not (root / SETTINGS).exists()
    assert not (root / DATA).exists()


def _serve(folder: Path, root: Path) -> None:
    """Run the command of the unit as the user of the unit, but on a free port."""
    unit = (root / "usr/lib/systemd/system/musicsvc.service").read_text("utf-8").splitlines()
    lines = dict(line.split("=", 1) for line in unit if "=" in line and not line.startswith("#"))
    assert (lines["User"], lines["Group"]) == ("musicsvc", "musicsvc")
    program, *arguments = lines["ExecStart"].split()
    service = Installed(folder, *clean.inside(root, []), *AS_SERVICE, program, variables={})
    with service.start(*arguments, "--port", "0") as server:
        service.run("healthcheck", "--url", server.root, "--ready", "--timeout", "60s")
        assert server.end(signal.SIGTERM) == 0


def test_lintian_finds_no_error(package: Path) -> None:
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    command = ["lintian", "--allow-root", "--fail-on", "error", str(package)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout
