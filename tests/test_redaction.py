"""Removal of secrets from texts and JSON values."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.redaction import redact, redact_json, redact_unknown
from musicsvc.store.accounts import tokens

TOKEN = "msvc_Kd93hGq2ZxYw7TnBv5LmRf8PsJc4Qe6Ua1Xo0iHtWgNzCDEF"
WORD = TOKEN[5:]
TEXT = st.text(max_size=9)
WRITTEN = [TOKEN, f"Bearer {WORD}", f"?token={WORD}&", f"/reports/{WORD}"]
SECRET = st.builds("{}{}{}".format, TEXT, st.sampled_from(WRITTEN), TEXT)
NAMED = st.builds(
    lambda name, value: {name: value},
    st.sampled_from(["password", "Push_Token", "clientSecret", "user[password]", "Set-Cookie"]),
    st.sampled_from([WORD, [WORD], {"a": WORD}]),
)
VALUE = st.recursive(
    SECRET | NAMED | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT | SECRET, inner, max_size=3),
    max_leaves=9,
)


def test_the_token_has_the_length_of_a_real_one() -> None:
    assert len(TOKEN) >= tokens.LENGTH


@given(VALUE)
def test_no_secret_is_left_in_a_json_value(value: Any) -> None:
    assert WORD not in json.dumps(redact_json(value))


@given(VALUE, st.integers(1, 9))
def test_no_secret_is_left_in_json_that_is_cut(value: Any, missing: int) -> None:
    text = json.dumps(value, ensure_ascii=False)
    assert WORD not in redact(text[:-missing])


@pytest.mark.parametrize(
    "text",
    [
        f"{{'name': 'a', 'password': '{WORD}'}}",
        f"name: a\npassword: {WORD}\n",
        f"<login><password>{WORD}</password></login>",
        f'--b\r\nContent-Disposition: form-data; name="password"\r\n\r\n{WORD}\r\n--b--',
        f'{{"password": "{WORD}"}}'.encode("utf-16").decode(errors="replace"),
    ],
)
def test_no_secret_is_left_in_a_text_in_an_unknown_notation(text: str) -> None:
    assert WORD not in redact_unknown(text).replace("\0", "")


def test_a_form_loses_its_secrets_only() -> None:
    assert redact_unknown("a=1&user%5Bpassword%5D=b&c=2") == "a=1&user%5Bpassword%5D=***&c=2"
    assert redact_unknown("a\0b") == "a\0b"


@pytest.mark.parametrize(
    "text",
    [
        f"?api-key={WORD}",
        f"?x={TOKEN.replace('_', '%255F')}",
        f"?next=%2Freports%2F{WORD}",
        f"text/plain; token={WORD}",
        f"?a=%6dsvc_{WORD}",
        f"?a=%256D%73vc%255f{WORD}",
        f"?pass%77ord={WORD}",
        f"?%74oke%6E={WORD[:9]}%26{WORD[9:]}",
        f"?user%5Bp%61ssword%5D={WORD}",
        f"/%72eports/{WORD}?page=2",
        f"?next=%2F%70assword%2F{WORD}",
        f"?next=%2Fx%3Ftoken%3D{WORD[:9]}%2526{WORD[9:]}",
        f"?q=%7B%22password%22%3A%20%22{WORD}%22%7D",
        f"?q=%257B%2522password%2522%253A%2522{WORD}%2522%257D",
        f"?a={''.join(f'%{ord(char):02x}' for char in TOKEN)}",
        f"?h=B%65arer%20{WORD}",
    ],
)
def test_no_secret_is_left_in_a_url_or_a_header(text: str) -> None:
    found = redact(text)
    assert WORD not in found
    assert WORD[9:] not in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"/api/v1/albums?page=2&a=%6dsvc_{WORD}&q=%C3%A4%26b", "/api/v1/albums?page=2&a=msvc_***&q=%C3%A4%26b"),
        ("/api/v1/albums?pass%77ord=a%26b&q=%C3%A4", "/api/v1/albums?password=***&q=%C3%A4"),
    ],
)
def test_a_target_loses_its_secrets_only(text: str, expected: str) -> None:
    assert redact(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "100 %",
        "?q=%C3%A4%20b&next=%2Falbums%3Fpage%3D2",
        "?q=%6dusic",
        "%zz%",
        "/api/v1/tokens/4",
        '{"name": "Token Ring", "client_id": "a"}',
        "?page=2&tokens=3",
        "a cookie jar",
        "password",
    ],
)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert redact(text) == text
