"""The unit, the account and the settings file of packaging/systemd."""

import shutil
import subprocess
from pathlib import Path

import pytest

from musicsvc import config

FOLDER = Path(__file__).resolve().parents[2] / "packaging" / "systemd"
UNIT = FOLDER / "musicsvc.service"
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@needs_systemd
def test_the_unit_exposes_little_of_the_machine() -> None:
    assert "exposure level" in _run("systemd-analyze", "security", "--offline=true", "--threshold=15", UNIT)


@needs_systemd
def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path) -> None:
    installed = tmp_path / UNIT.name
    text = UNIT.read_text("utf-8")
    assert text.count("ExecStart=/usr/bin/musicsvc ") == 1
    installed.write_text(text.replace("ExecStart=/usr/bin/musicsvc ", "ExecStart=/bin/true "), "utf-8")

    assert _run("systemd-analyze", "verify", installed) == ""


@needs_systemd
def test_the_account_owns_the_data_folder_and_cannot_sign_in(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()

    _run("systemd-sysusers", f"--root={tmp_path}", FOLDER / "musicsvc.sysusers")

    (account,) = (tmp_path / "etc" / "passwd").read_text("utf-8").splitlines()
    name, *_, home, shell = account.split(":")
    assert (name, home, shell) == ("musicsvc", "/var/lib/musicsvc", "/usr/sbin/nologin")


def test_the_settings_file_names_the_state_directory_of_the_unit() -> None:
    settings = config.load(FOLDER / "config.toml")

    assert settings.data_dir == Path("/var/lib/musicsvc")
    assert "\nStateDirectory=musicsvc\n" in UNIT.read_text("utf-8")
