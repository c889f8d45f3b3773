"""Print the names, versions, licences and licence texts of everything that PyInstaller put into the program.

`python licences.py FOLDER`, with the interpreter that PyInstaller ran in, and the folder of its tables of contents.
"""

import ast
import platform
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from importlib import metadata
from json import loads
from pathlib import Path
from typing import NamedTuple

import musicsvc

OURS = Path(musicsvc.__file__).parent
TEXT = re.compile(r"licen[cs]e|copying|notice|copyright", re.IGNORECASE)
LIBRARY = re.compile(r"(lib[\w+-]+?)(?:-[0-9a-f]{8})?\.so")  # wheels add a part of the hash to the names of theirs


class Part(NamedTuple):
    """A part of the program by others: its licence by name, the files with its text, and what it has in turn."""

    name: str
    version: str
    licence: str
    texts: list[Path]
    contains: list[str]


def main(folder: Path) -> None:
    files = _bundled(folder)
    owners, libraries = _owners(files), _libraries(files)
    parts = [_distribution(name) for name in sorted(owners, key=str.lower) if name != "musicsvc"]
    parts += [_python(), _distribution("pyinstaller"), *_vendored(), *libraries]
    print("musicsvc is under the MIT licence (LICENSE). It comes with these parts of others:\n")
    for part in parts:
        print(f"  {part.name} {part.version}: {part.licence}")
    for part in parts:
        print(f"\n{'=' * 100}\n{part.name} {part.version}\nLicence: {part.licence}")
        if part.contains:
            print("Contains: " + "; ".join(part.contains))
        for text in part.texts:
            print(f"\n{'-' * 100}\n{text.read_text('utf-8', 'replace').strip()}")


def _bundled(folder: Path) -> set[Path]:
    """Return the files that are in the program, as they were before."""
    tables = [ast.literal_eval((folder / f"{name}-00.toc").read_text("utf-8")) for name in ("PYZ", "COLLECT")]
    rows = [row for table in tables for entries in table if isinstance(entries, list) for row in entries]
    return {Path(source).resolve() for _, source, kind in rows if source and kind != "SYMLINK"}


def _owners(files: set[Path]) -> set[str]:
    """Return the names of the distributions that the files belong to."""
    return {
        each.metadata["Name"]
        for each in metadata.distributions()
        if any(Path(str(each.locate_file(file))).resolve() in files for file in each.files or ())
    }


def _distribution(name: str) -> Part:
    found = metadata.distribution(name)
    info = next(file.parent for file in found.files or () if file.name == "METADATA")
    texts = [file for file in found.files or () if info in file.parents and TEXT.search(file.name)]
    boms = [file for file in found.files or () if file.match("sboms/*.json")]
    if not texts:
        sys.exit(f"{name} has no licence text in its metadata. Find out its licence before you pass it on.")
    return Part(
        name,
        found.version,
        _licence(found.metadata),
        [Path(str(found.locate_file(file))) for file in texts],
        sorted({each for bom in boms for each in _components(Path(str(found.locate_file(bom))), name)}),
    )


def _licence(about: metadata.PackageMetadata) -> str:
    classified = [each.rpartition(" :: ")[2] for each in about.get_all("Classifier", []) if each.startswith("License")]
    return about["License-Expression"] or ", ".join(classified) or (about["License"] or "see below").splitlines()[0]


def _components(bom: Path, name: str) -> Iterator[str]:
    """Yield the names, versions and licences of a list of components (CycloneDX), without the distribution itself."""
    for each in loads(bom.read_text("utf-8")).get("components", []):
        if each["name"].replace("-", "_") != name.replace("-", "_"):
            licences = [
                choice.get("expression") or choice["license"].get("id", "") for choice in each.get("licenses", [])
            ]
            yield " ".join(
                filter(None, [each["name"], each.get("version"), f"({', '.join(licences)})" if licences else ""])
            )


def _python() -> Part:
    text = Path(sysconfig.get_path("stdlib"), "LICENSE.txt")
    texts = [text] if text.exists() else _copyright(f"python{sysconfig.get_python_version()}")
    return Part("CPython", platform.python_version(), "PSF-2.0", texts, [])


def _vendored() -> Iterator[Part]:
    """Yield the fonts, style sheets and scripts of others in our package."""
    for listing in sorted(OURS.rglob("VENDORED.toml")):
        about = tomllib.loads(listing.read_text("utf-8"))
        texts = [listing.with_name(name) for name in about["files"] if TEXT.search(name)]
        yield Part(about["name"], about["version"], about["licence"], texts, [])


def _libraries(files: set[Path]) -> Iterator[Part]:
    """Yield the shared libraries that are not of Python. The texts are those of the same libraries of this system."""
    names = {file: found[1] for file in files if (found := LIBRARY.match(file.name)) and "python" not in file.name}
    packages = _packages(set(names.values()))
    for file, name in sorted(names.items()):
        package = packages.get(name)
        brought = file.parent.name.endswith(".libs")  # by a wheel, which may have its licence too
        if not brought and package is None:
            sys.exit(f"{file} belongs to no package of this system. Find out its licence before you pass it on.")
        version = f"of {file.parent.name}" if brought else _run("dpkg-query", "-W", "-f", "${Version}", package or "")
        licence = f"as the package {package.partition(':')[0]}" if package else "as the wheel that brings it"
        yield Part(file.name, version, licence, _copyright(package) if package else [], [])


def _packages(libraries: set[str]) -> dict[str, str]:
    """Return the packages of this system that have the libraries, by library."""
    patterns = [f"*/{library}{end}" for library in libraries for end in (".so.*", "-[0-9]*.so.*")]
    rows = [row.partition(": ") for row in _run("dpkg-query", "-S", *patterns, may_fail=True).splitlines()]
    found = ((re.match(r"(.+?)(?:-[\d.]+)?\.so\.", Path(path).name), owners) for owners, _, path in rows)
    return {match[1]: owners.split(", ")[0] for match, owners in found if match}


def _copyright(package: str) -> list[Path]:
    text = Path("/usr/share/doc", package.partition(":")[0], "copyright")
    if not text.exists():
        sys.exit(f"{text} does not exist. The licence of that package belongs into the list.")
    return [text]


def _run(*command: str, may_fail: bool = False) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=not may_fail).stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
