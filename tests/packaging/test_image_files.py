"""The files of packaging/image agree with the project and with each other."""

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def _text(file: str) -> str:
    return (ROOT / "packaging" / file).read_text("utf-8")


def _name(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def test_the_image_pins_every_dependency() -> None:
    extras = PROJECT["optional-dependencies"]
    pinned = {_name(line) for line in _text("constraints.txt").splitlines() if "==" in line}

    assert {_name(text) for text in [*PROJECT["dependencies"], *extras["postgres"], *extras["parquet"]]} <= pinned


def test_the_image_names_the_licence_of_the_project() -> None:
    assert f'licenses="{PROJECT["license"]}"' in _text("image/Dockerfile")


def test_the_service_has_a_host_name_that_stays_to_which_uploaded_files_belong() -> None:
    assert "\n    hostname: musicsvc" in _text("image/compose.yaml")


def test_the_service_trusts_the_network_of_its_proxy_only() -> None:
    text = _text("image/compose.yaml")
    (network,) = re.findall(r"subnet: ([\d./]+)", text)

    assert f"""MUSICSVC_SERVER__TRUSTED_PROXIES: '["{network}"]'""" in text
