"""The commands of docs/backups.md, run in order."""

import re
import shlex
from pathlib import Path

import pytest

from musicsvc.store.backups import folder as backup_folder
from tests.support.command import run_in_process

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "backups.md").read_text("utf-8")


@pytest.mark.only_on("sqlite")
def test_the_commands_of_the_page_do_what_it_says(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other-disk").mkdir()
    blocks = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.strip().splitlines()]
    for line in lines:
        if line[0] != "pytest":
            _run(line)
    folder = Path(store_url.removeprefix("sqlite:///")).parent
    kept = backup_folder.entries(folder)
    assert [len(backup_folder.entries(place)) for place in (folder / "backups", tmp_path / "other-disk")] == [1, 1]
    assert [entry.kind for entry in kept] == ["before-restore"]
    assert (tmp_path / "rehearsal" / "musicsvc.db").exists()
    for pattern in ("musicsvc-scheduled-", "musicsvc-before-restore-", "musicsvc-before-0002_labels-"):
        assert backup_folder.NAME.fullmatch(f"{pattern}20260131T120000Z.db")
        assert pattern in PAGE


def _run(line: list[str]) -> None:
    given = [part.partition("=") for part in line if re.match(r"[A-Z_]+=", part)]
    program, *arguments = line[len(given) :]
    assert program == "musicsvc"
    with pytest.MonkeyPatch.context() as environment:
        for name, _, value in given:
            environment.setenv(name, value)
        done = run_in_process(arguments)
    assert done.returncode == 0, (line, done.stderr)
