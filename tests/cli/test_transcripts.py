"""The whole output of commands, compared with transcripts: stdout, stderr and exit code.

A transcript (transcripts/*.txt) has the content of files after `> NAME`, and commands after `$`, each with its output:
stdout indented, stderr after `!`, and the exit code in brackets if it is not 0. `pytest --rewrite FILE` writes the
output as it is now into the transcripts; read the difference before it is committed.
"""

import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from stat import S_IMODE

import pytest

from musicsvc.clock import MINUTE, MovableClock
from tests.support.command import run_in_process

pytestmark = pytest.mark.only_on("sqlite")  # the same over either database

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
LONG = ("accounts", "catalog")
# Parts that differ from run to run, on other machines, or with each migration.
RANDOM = tuple(
    (re.compile(pattern, re.MULTILINE), instead)
    for pattern, instead in (
        (r"msvc_\w{46}", "msvc_VALUE"),
        (r"(/password/)[\w-]{43}", r"\1VALUE"),
        (r'("last_four": ")\w{4}"|((?:-|:\d\d|last four) {2,})\w{4}$', r"\1\2LAST"),
        (r"( {2,})\w{4}( +\d{4}-\d\d-\d\d \d\d:\d\d)$", r"\1LAST\2"),
        (r"\b\d{4}_[a-z_]+\b", "MIGRATION"),
        (r'(,\s*"MIGRATION")+', ", ..."),
        (r'(Backed up |Restored )[\d,]+( rows )|("rows": )\d+(,\s+"schema")', r"\1\3ROWS\2\4"),
        (r'("bytes": |"seconds": (?=\d+\.)|SQLite |, in |\()\d+[\d.]*(,?$| is| s\.| MB\))', r"\1NUMBER\2"),
        (r"[\d,]+( MB are free)", r"NUMBER\1"),
        (r"\[[\s\d,]+\]", lambda found: " ".join(found[0].split())),  # short lists of numbers
    )
)


@pytest.mark.parametrize(
    "file",
    [pytest.param(file, marks=[pytest.mark.slow] if file.stem in LONG else []) for file in TRANSCRIPTS],
    ids=lambda file: file.stem,
)
def test_commands_print_what_their_transcript_shows(
    file: Path,
    tmp_path: Path,
    store_url: str,
    clock: MovableClock,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    monkeypatch.setenv("MUSICSVC_DATA_DIR", str(tmp_path / "home"))
    if file.stem != "database":
        monkeypatch.setenv("MUSICSVC_DATABASE_URL", store_url)
    monkeypatch.setenv("MUSICSVC_SERVER__MAX_CONNECTIONS", "50")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.chdir(tmp_path)
    expected = file.read_text("utf-8")
    actual = "".join(_played(expected, clock))
    if request.config.getoption("--rewrite"):
        file.write_text(actual, "utf-8")
    assert actual == expected
    modes = {(place.is_dir(), S_IMODE(place.stat().st_mode)) for place in (tmp_path / "home").rglob("*")}
    assert modes == ({(True, 0o700), (False, 0o600)} if file.stem == "database" else set())


def _played(transcript: str, clock: MovableClock) -> Iterator[str]:
    """Run the commands of a transcript, a minute after one another. Yield the transcript with their real output."""
    for part in re.split(r"^(?=[$>#\n])", transcript, flags=re.MULTILINE):
        head, _, body = part.partition("\n")
        if head.startswith("$"):
            clock.advance(MINUTE)
            yield f"{head}\n{_output(head[2:], clock)}"
            continue
        if head.startswith(">"):
            Path(head[2:]).write_text(textwrap.dedent(body), "utf-8")
        yield part


def _output(line: str, clock: MovableClock) -> str:
    """Run a command; `< FILE` gives it the file as stdin, and `> FILE` writes its stdout there. Return its output."""
    command, _, target = line.partition(" > ")
    command, _, source = command.partition(" < ")
    stdin = Path(source).read_text("utf-8") if source else ""
    with pytest.MonkeyPatch.context() as patch:
        if "doctor" in command.split():
            patch.setenv("COLUMNS", "1000")  # where its lines are wrapped depends on the length of the folder's path
        done = run_in_process(shlex.split(command), stdin, clock=clock)
    shown = "" if target else done.stdout.replace("\r", r"\r")
    if target:
        Path(target).write_text(done.stdout, "utf-8")
    code = f"[{done.returncode}]\n" if done.returncode else ""
    folder = str(Path.cwd())
    if folder in shown and not shown.startswith(("{", "[")):  # its length changes the widths of columns
        shown = re.sub(" {3,}", "  ", shown)
    output = textwrap.indent(shown, "  ", bool) + textwrap.indent(done.stderr, "! ", bool) + code
    for pattern, instead in RANDOM:
        output = pattern.sub(instead, output)
    return output.replace(folder, "FOLDER")
