"""The parser of forms with files: the same parts however the body is cut, and no other error than a refusal."""

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.errors import Malformed
from musicsvc.server.request.multipart import FormData, Part

pytestmark = pytest.mark.only_on("sqlite")
BOUNDARY = "AaB03x"
# Contents that look like boundaries, or end in a part of one.
CUT_BOUNDARIES = [b"\r\n--AaB03", b"--AaB03x", b"\r\n--AaB03y\r\n", b"\r", b""]
CONTENTS = st.one_of(st.binary(max_size=40), st.sampled_from(CUT_BOUNDARIES))
NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters='"\\%'), min_size=1, max_size=9)


def encoded(parts: Iterable[tuple[str, str | None, bytes]]) -> bytes:
    body = b""
    for name, filename, content in parts:
        head = f'form-data; name="{name}"' + ("" if filename is None else f'; filename="{filename}"')
        body += f"--{BOUNDARY}\r\nContent-Disposition: {head}\r\nContent-Type: text/csv\r\n\r\n".encode()
        body += content + b"\r\n"
    return body + f"--{BOUNDARY}--\r\n".encode()


def parsed(body: bytes, cuts: Sequence[int]) -> list[tuple[str, str | None, bytes]]:
    """Return the parts of a body that arrives in pieces."""
    form, found = FormData(BOUNDARY), list[tuple[str, str | None, bytes]]()
    ends = [*sorted(cuts), len(body)]
    for begin, end in zip([0, *ends], ends, strict=False):
        for each in form.feed(body[begin:end]):
            if isinstance(each, Part):
                found.append((each.name, each.filename, b""))
            elif found:
                found[-1] = (*found[-1][:2], found[-1][2] + each)
    assert form.ended
    return found


@given(
    st.lists(st.tuples(NAMES, st.none() | NAMES, CONTENTS), min_size=1, max_size=4),
    st.lists(st.integers(0, 400), max_size=12),
)
def test_parts_are_the_same_however_the_body_is_cut(
    parts: list[tuple[str, str | None, bytes]], cuts: list[int]
) -> None:
    body = encoded(parts)
    assert parsed(body, [min(cut, len(body)) for cut in cuts]) == parts
    assert parsed(body, range(len(body))) == parts


@given(st.lists(st.one_of(st.binary(max_size=30), st.sampled_from([b"--AaB03x", b"\r\n", b"\r\n\r\n", b"form-data;"]))))
def test_any_other_bytes_are_refused_or_left_open(pieces: list[bytes]) -> None:
    form = FormData(BOUNDARY)
    try:
        for piece in pieces:
            assert all(isinstance(each, Part | bytes) for each in form.feed(piece))
    except Malformed:
        return


@pytest.mark.parametrize("boundary", ["", "x" * 71, "a\x00b", "ends in a space "])
def test_a_boundary_that_is_not_allowed_is_refused(boundary: str) -> None:
    with pytest.raises(Malformed):
        FormData(boundary)


@pytest.mark.parametrize(
    ("head", "part"),
    [
        (b'CONTENT-DISPOSITION:form-data;NAME="a"', ("a", None)),
        (b'X: y\r\nContent-Disposition: form-data ; filename="c;d\\"%22.csv"; name="a"', ("a", 'c;d"".csv')),
        (b'Content-Disposition: form-data; name=a; filename*="e"', ("a", None)),
        (b'Content-Disposition: form-data; name="a', None),
        (b'Content-Disposition: attachment; name="a"', None),
        (b'Content-Disposition: form-data; filename="name=\\"a\\""', None),
        (b'Content-Type: form-data; name="a"', None),
    ],
)
def test_a_head_names_the_field_and_counts_with_all_that_surrounds_it(
    head: bytes, part: tuple[str, str | None] | None
) -> None:
    raw = b"--AaB03x\r\n%s\r\n\r\n" % head
    if part is None:
        with pytest.raises(Malformed):
            list(FormData(BOUNDARY).feed(raw))
    else:
        assert [*FormData(BOUNDARY).feed(raw)] == [Part(*part, len(raw) + 2)]  # and the end of the line before


def test_a_head_without_end_is_refused() -> None:
    form = FormData(BOUNDARY)
    with pytest.raises(Malformed):
        list(form.feed(b"--AaB03x\r\n" + b"x" * 9000))
