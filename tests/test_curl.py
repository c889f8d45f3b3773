"""Command lines of curl, as a shell reads them."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc import curl

SHELL = 'curl() { printf "%s\\0" "$@"; }; TOKEN=msvc_t\n'  # prints the arguments that the line has for curl
ROOT = "http://127.0.0.1:8080"
ARGUMENT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
HEADER = st.text(st.characters(exclude_characters="\0\r\n", exclude_categories=["Cs"]), min_size=1)


@pytest.mark.slow
@given(
    st.sampled_from(["GET", "HEAD", "POST", "PATCH", "M-SEARCH", "it's"]),
    ARGUMENT,
    st.none() | ARGUMENT,
    st.dictionaries(st.sampled_from(["Content-Type", "Accept", "If-None-Match"]), HEADER),
    st.booleans(),
)
def test_a_shell_passes_every_content_on_as_it_is(
    method: str, target: str, body: str | None, headers: dict[str, str], authorized: bool
) -> None:
    line = curl.command(method, ROOT + target, authorized=authorized, body=body, headers=headers)
    run = subprocess.run(["sh"], input=(SHELL + line).encode(), capture_output=True, check=True)
    words = run.stdout.decode().split("\0")[:-1]
    assert words[-1] == ROOT + target
    assert ("Authorization: Bearer msvc_t" in words) == authorized
    expected = [f"{name}: {value}" for name, value in headers.items() if name == "If-None-Match"]
    assert all(each in words for each in expected)
    sent = [] if body is None or method == "HEAD" else [body]
    assert [words[at + 1] for at in range(len(words)) if words[at] in {"--json", "--data-raw"}][:1] == sent


def test_a_body_is_never_taken_for_a_file() -> None:
    line = curl.command("POST", ROOT, authorized=False, body="@/etc/hostname")
    assert line == f"curl -i --data-raw @/etc/hostname -H 'Content-Type: application/json' {ROOT}"


def test_a_file_and_a_header_without_a_value_are_written_as_curl_reads_them() -> None:
    line = curl.command("PUT", ROOT, authorized=True, file="-", headers={"Accept": ""})
    assert line == (
        "curl -i -X PUT --data-binary @- -H Content-Type: -H 'Accept;' -H \"Authorization: Bearer $TOKEN\" " + ROOT
    )
