"""Help, wrong usage, failures, quiet, pipes and interrupts."""

import io
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperCommand, TyperGroup

from musicsvc.cli import stdio
from musicsvc.cli.main import COMMANDS as COMMANDS_OF_PROGRAM
from musicsvc.cli.main import command
from musicsvc.store.engine.store import Store
from musicsvc.store.models import User
from tests.cli.conftest import Run
from tests.support.command import run_in_process

FULL = Path("/dev/full")
NO_SPACE = "Error: The output: No space left on device.\n"
HEAVY = (
    *("pydantic", "pydantic_settings", "peewee", "apsw", "psycopg", "aiohttp", "rich.table", "argon2", "zxcvbn"),
    *("prometheus_client", "orjson", "musicsvc.server", "typst", "regex", "duckdb"),
)

WAITING = """
from musicsvc.__main__ import main
sys.argv = ["musicsvc", "token", "inspect"]
signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
signal.setitimer(signal.ITIMER_REAL, 0.3)
main()
"""
IMPORTING = """
class Finder:
    def find_spec(name, *_):
        if name == "musicsvc.cli.main":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder)
runpy.run_module("musicsvc", run_name="__main__")
"""


def leaves(group: TyperGroup, path: str = "musicsvc") -> Iterator[tuple[str, TyperCommand]]:
    for name, below in group.commands.items():
        if isinstance(below, TyperGroup):
            yield from leaves(below, f"{path} {name}")
        else:
            assert isinstance(below, TyperCommand)
            yield f"{path} {name}", below


COMMANDS = dict(leaves(command()))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_a_help_text_and_takes_no_secret(name: str) -> None:
    found = COMMANDS[name]
    assert (found.help or "").strip()
    for option in found.params:
        assert getattr(option, "hidden", False) or getattr(option, "help", None), option.name
        assert option.name not in {"token", "password", "secret", "password_hash"}


def test_the_help_of_the_program_begins_those_of_its_commands() -> None:
    for name, (text, _) in COMMANDS_OF_PROGRAM.items():
        assert " ".join((command().commands[name].help or "").split("\n\n")[0].split()) == text


def test_help_costs_little_and_loads_nothing_heavy() -> None:
    probe = f"""
import sys
from musicsvc.cli.main import main
sys.argv = ["musicsvc", "--help"]
try:
    main()
except SystemExit:
    pass
loaded = [name for name in {HEAVY!r} if name in sys.modules]
assert not loaded, loaded
"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.4


def test_the_help_of_no_command_loads_anything_heavy() -> None:
    probe = f"""
import sys
from musicsvc.cli.main import command
assert [*command().commands.values()]
loaded = [name for name in {HEAVY!r} if type(sys.modules.get(name)).__name__ not in {{'Later', 'NoneType'}}]
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", probe], check=True)


@pytest.mark.slow
def test_a_command_loads_its_own_modules_before_it_runs(bare: Run) -> None:
    bare("init")
    probe = """
import sys
from musicsvc.cli import later, main
sys.argv = ["musicsvc", "user", "list"]
try:
    main.main()
finally:
    print(*(name for name, module in sys.modules.items() if type(module) is later.Later))
    print("peewee" in sys.modules, "musicsvc.cli.serve" in sys.modules)
"""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LC_ALL", "C.UTF-8")  # of a new interpreter, which has loaded nothing yet
        done = subprocess.run([sys.executable, "-c", probe], check=False, capture_output=True, encoding="utf-8")
    assert (done.returncode, done.stdout.splitlines()[-2:]) == (0, ["", "True False"]), done.stderr


def test_a_server_loads_no_package_that_only_some_requests_need() -> None:
    line = [sys.executable, "-c", "import musicsvc.server.serving, sys; print(*sys.modules)"]
    done = subprocess.run(line, capture_output=True, encoding="utf-8", check=True)
    assert not {"rich", "typst", "duckdb"} & set(done.stdout.split())


def test_shared_options_are_accepted_before_and_after_the_command(bare: Run, tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text("[server]\nport = 9\n")
    for line in (("--config", str(file), "config", "show"), ("config", "show", "--config", str(file))):
        assert [line.split() for line in bare(*line).stdout.splitlines() if line.startswith("server.port ")] == [
            ["server.port", "9", str(file)]
        ]
    assert bare("init", "--quiet").stderr == bare("-q", "init").stderr == ""
    bare("--config", str(tmp_path / "missing.toml"), "user", "list", expect=1)


@pytest.mark.parametrize(
    "line",
    ["export tracks -o", "db backup", "db restore", "db copy one.db", "plays dump --output", "user list --config"],
)
def test_an_empty_path_is_wrong_usage(bare: Run, line: str) -> None:
    assert bare(*line.split(), "", expect=2).stderr.endswith(": An empty text names no file.\n")


def test_an_argument_that_is_not_utf_8_is_wrong_usage() -> None:
    line: list[str | bytes] = [sys.executable, "-m", "musicsvc", "user", "show", b"\xff@example.test"]
    done = subprocess.run(line, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (2, b"Error: An argument is not valid UTF-8.\n")


@pytest.mark.slow
@pytest.mark.unbuffered
def test_a_closed_output_pipe_is_not_an_error(run: Run) -> None:
    run("user", "create", "ada@example.test")
    program = subprocess.Popen(
        [sys.executable, "-m", "musicsvc", "user", "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert program.stdout
    assert program.stderr
    program.stdout.close()
    assert program.stderr.read() == b""
    program.stderr.close()
    program.wait(30)


@pytest.mark.unbuffered
@pytest.mark.usefixtures("bare")
def test_only_a_result_that_a_closed_stdout_loses_is_an_error() -> None:
    for line, code, told in ("--version", 1, "Error: The output: Bad file descriptor.\n"), ("init --quiet", 0, ""):
        begin = ["sh", "-c", f'exec "$0" -m musicsvc {line} >&-', sys.executable]
        done = subprocess.run(begin, stderr=subprocess.PIPE, encoding="utf-8", check=False)
        assert (done.returncode, done.stderr) == (code, told)


@pytest.mark.unbuffered
@pytest.mark.parametrize(("probe", "code"), [(WAITING, 130), (IMPORTING, -signal.SIGINT)])
def test_an_interrupt_ends_quietly_with_130(probe: str, code: int) -> None:
    begin = """
import os, runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests may run in the background, without it
"""
    line = [sys.executable, "-c", begin + probe]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        program.wait(30)
        assert program.stdout
        assert program.stderr
        assert (program.returncode, program.stdout.read(), program.stderr.read()) == (code, b"", b"")


def test_an_interrupted_command_says_what_it_leaves(
    run: Run, store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = "Run the same command again to continue.\n"

    def interrupted(*_: object, **_named: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        for place in ("musicsvc.store.copying.copy.copy", "musicsvc.store.plays.reported.account_plays.withdraw"):
            patch.setattr(place, interrupted)
        run("user", "create", "eve@label.test")
        copied = run("db", "copy", store_url, str(tmp_path / "copy.db"), expect=130).stderr
        withdrawn = run("plays", "withdraw", "eve@label.test", expect=130).stderr
        monkeypatch.chdir(tmp_path)  # where the data of the account are written
        patch.setattr("musicsvc.store.people.catalogs.delete_some", interrupted)
        deleting = "user", "delete", "eve@label.test", "--with-artists", "--yes"
        deleted = run(*deleting, expect=130).stderr
    assert deleted.endswith(" may be deleted. Run the command again, with --no-export, to go on.\n")
    run(*deleting, "--no-export")
    assert copied == f"Interrupted. Everything copied so far is kept. {again}"
    assert withdrawn.endswith(f"\nInterrupted. Some of these plays may be withdrawn. {again}")


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="no device that is full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_an_output_that_cannot_be_written_is_a_failure(
    run: Run, monkeypatch: pytest.MonkeyPatch, unbuffered: str
) -> None:
    run("user", "create", "ada@example.test")
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    with FULL.open("wb", buffering=0 if unbuffered else -1) as full:
        output = io.TextIOWrapper(full, "utf-8", write_through=bool(unbuffered))
        done = run_in_process(("user", "list"), output=output)
        assert (done.returncode, done.stderr) == (1, NO_SPACE)
        stdio.discard(output)
    for arguments in (("user", "list", "--json"), ("--help",), ("--version",)):
        with FULL.open("w") as errors:
            line = [sys.executable, "-m", "musicsvc", *arguments]
            ended = subprocess.run(line, stdout=errors, stderr=subprocess.PIPE, check=False)
        assert (ended.returncode, ended.stderr) == (1, NO_SPACE.encode()), arguments
    with FULL.open("w") as errors:
        line = [sys.executable, "-m", "musicsvc", "--version"]
        assert subprocess.run(line, stdout=errors, stderr=errors, check=False).returncode == 1


def test_an_uncreatable_folder_is_one_line(bare: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MUSICSVC_DATABASE_URL", f"sqlite:///{tmp_path}/file/below/musicsvc.db")
    assert "Not a directory" in bare("init", expect=1).stderr


def test_a_pipe_gets_unwrapped_lines_without_colours(run: Run, store: Store) -> None:
    name = "A name that is far too long for a terminal of eighty columns, but not for a pipe \x1b[31m"
    run("user", "create", "ada@example.test")
    store.write(lambda: User.update(display_name=name).execute()).result()  # as an earlier version took it
    out = run("user", "list").stdout
    assert len(out.splitlines()) == 2
    assert name.replace("\x1b", "\\x1b") in out
    assert "\x1b" not in out


def test_the_shell_completes_commands_and_their_options(bare: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_MUSICSVC_COMPLETE", "complete_bash")
    for typed, offered in (("musicsvc us", "user"), ("musicsvc user create --pass", "--password-stdin")):
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(typed.count(" ")))
        assert bare().stdout.split() == [offered]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--wait-for-database 1e400", "'--wait-for-database': must be 1,000,000,000 or less, not '1e400'."),
        ("--host 256.1.1.1", "--host: '256.1.1.1' is not an address such as 127.0.0.1"),
        ("--tls-cert c.pem", "--tls-cert: TLS needs both --tls-cert and --tls-key."),
        ("--tls-key k.pem", "--tls-key: TLS needs both --tls-cert and --tls-key."),
    ],
)
def test_options_of_the_server_are_refused_as_wrong_usage(bare: Run, options: str, told: str) -> None:
    for demo in ((), ("--demo",)):
        assert f"Error: Invalid value for {told}" in bare("serve", *demo, *options.split(), expect=2).stderr


def test_the_version_is_one_line(bare: Run) -> None:
    assert bare("--version").stdout.startswith("musicsvc 0.")


def test_a_group_without_a_command_lists_its_commands(bare: Run) -> None:
    for group, below in command().commands.items():
        if isinstance(below, TyperGroup):
            done = bare(group, expect=2)
            assert f"Usage: musicsvc {group} [OPTIONS] COMMAND" in done.stdout + done.stderr
            assert "Missing command" not in done.stderr, group
