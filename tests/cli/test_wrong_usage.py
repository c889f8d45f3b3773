"""Wrong usage, which can be judged without the database, ends with exit code 2, also where there is no database."""

import shlex
from pathlib import Path

import pytest

from tests.support.command import run_in_process

pytestmark = pytest.mark.only_on("sqlite")  # no database is opened

LONG = "x" * 3_000
WRONG = {  # the command, and the option or argument that the message names
    "token create ada@label.test --name x": "--name",
    "token create ada@label.test --name \u200b\u200b\u200b": "--name",
    "token regenerate 1 --overlap 25h": "--overlap",
    "user create ada": "EMAIL",
    f"user create ada@label.test --display-name {LONG}": "--display-name",
    "user create ada@label.test --display-name \u200b": "--display-name",
    "user edit ada@label.test --email ada": "--email",
    "user edit ada@label.test --display-name ''": "--display-name",
    "access request ada --use-case a --volume b --organization c": "EMAIL",
    f"access request ada@label.test --use-case {LONG} --volume b --organization c": "--use-case",
    "access request ada@label.test --use-case a --volume '' --organization c": "--volume",
    f"access deny ada@label.test --reason {LONG}": "--reason",
    "seed --scale 0": "--scale",
    "seed --scale 1001": "--scale",
    f"artist edit 1 --name {LONG}": "--name",
    "album edit 1 --upc 036000291453": "--upc",
    "track edit 1 --bpm 5000": "--bpm",
    "track edit 1 --bpm fast": "--bpm",
    "track edit 1 --name ''": "--name",
    "plays list ada@label.test --since nonsense": "--since",
    "plays withdraw ada@label.test --since nonsense": "--since",
    "export tracks --period nonsense": "--period",
    "export tracks --from 2026-02-30 --to 2026-03-01": "--from",
    "insights show track 0": "ID",
    "fingerprint set 1 bad": "STATUS",
    "import catalog FILE --map x": "--map",
    "import catalog FILE --map x=nonsense": "--map",
}


@pytest.mark.parametrize("line", WRONG, ids=lambda line: line[:40])
def test_what_can_be_judged_without_a_database_is_wrong_usage(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "nothing"))
    monkeypatch.delenv("MUSICSVC_DATABASE_URL", raising=False)
    file = tmp_path / "songs.csv"
    file.write_text("track,artist\nAir,Bach\n")

    done = run_in_process([str(file) if each == "FILE" else each for each in shlex.split(line)])

    assert (done.returncode, done.stdout) == (2, "")
    assert f"Invalid value for {WRONG[line]}" in done.stderr.replace("'", "")
    assert not (tmp_path / "nothing").exists()


def test_a_password_that_is_too_short_is_wrong_usage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "nothing"))
    monkeypatch.delenv("MUSICSVC_DATABASE_URL", raising=False)

    done = run_in_process(["user", "create", "ada@label.test", "--password-stdin"], stdin="short")

    assert (done.returncode, done.stdout) == (2, "")
    assert "The password must have 8 to 128 characters." in done.stderr
