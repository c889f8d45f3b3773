"""Syntax and normal form of e-mail addresses (docs/configure.md, E-mail addresses)."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from musicsvc.store.accounts import email_addresses

RESERVED = ("test", "invalid", "local", "internal", "localhost", "onion", "arpa", "example")


@pytest.mark.parametrize(
    "email",
    [
        *(f"u@label.{name}" for name in RESERVED),
        "u@localhost",
        "u@LOCALHOST",
        "u@ｌｏｃａｌｈｏｓｔ",
        "u@10.in-addr.arpa",
        "u@a.b1",
        "u@r3---sn.label.test",
        "o'neil+tag#1@label.test",
        "дарья@почта.рф",
        "用户@例え。テスト",
        "eva@xn--exmple-cua.test",
        "x" * 64 + "@label.test",
        "é" * 64 + "@" + ".".join(["y" * 61] * 3) + ".test",
    ],
)
def test_a_valid_email_has_a_valid_normal_form(email: str) -> None:
    assert len(email) <= 255
    assert email_addresses.problem(email) is None
    key = email_addresses.normalize(email)
    assert email_addresses.problem(key) is None
    assert email_addresses.normalize(key) == key


@pytest.mark.parametrize(
    "email",
    [
        "",
        "u",
        "u@",
        "@label.test",
        *(f"u@{name}" for name in RESERVED if name != "localhost"),
        "u@127.0.0.1",
        "u@[127.0.0.1]",
        "u@label.test.",
        "u@-label.test",
        "u@a..test",
        "u@a_b.test",
        "u@" + "y" * 64 + ".test",
        "u@xn--a.test",
        ".u@label.test",
        "u.@label.test",
        "u..v@label.test",
        "u v@label.test",
        "u\u00a0v@label.test",
        "u\u200bv@label.test",
        "\u0301u@label.test",
        "u\x00@label.test",
        "u\ue000@label.test",
        "u;v@label.test",
        "u；v@label.test",  # NFKC: a semicolon
        "a﹫b@label.test",  # NFKC: a second @
        '"u v"@label.test',
        "Ann <u@label.test>",
        "u＠label.test",
    ],
)
def test_what_is_not_an_email_is_refused(email: str) -> None:
    assert email_addresses.problem(email) == email_addresses.INVALID


def test_the_lengths_are_those_of_rfc_5321() -> None:
    longest = "x" * 64 + "@" + ".".join(["y" * 61] * 3) + ".test"
    assert len(longest) == 255
    assert email_addresses.problem(f" {longest} ") is None
    assert "longer than 255" in str(email_addresses.problem(longest + "t"))
    for local in ("x" * 65, "\ufdfa" * 4):  # one that is 72 characters in NFKC
        assert "before the @ must not be longer than 64" in str(email_addresses.problem(f"{local}@label.test"))


@pytest.mark.parametrize(
    "spellings",
    [
        ("eva@exämple.test", "EVA@EXÄMPLE.Test", "ＥＶＡ@ｅｘａ\u0308ｍｐｌｅ．test", "eva@XN--EXMPLE-cua.test"),
        ("zoë@label.test", "ZOE\u0308@label.test", " Zoë@label.test\n"),
        ("ﬁ@label.test", "FI@label.test"),
        ("weiß@label.test", "WEISS@label.test"),
    ],
)
def test_the_spellings_of_a_mailbox_share_a_normal_form(spellings: tuple[str, ...]) -> None:
    assert len({email_addresses.normalize(email) for email in spellings}) == 1


def test_other_mailboxes_have_another_normal_form() -> None:
    others = ["a@straße.test", "a@strasse.test", "á@strasse.test", "a.b@strasse.test", "a+b@strasse.test"]
    assert len({email_addresses.normalize(email) for email in others}) == len(others)


@pytest.mark.slow
@given(st.text(max_size=20), st.text(max_size=20))
def test_a_normal_form_of_anything_valid_is_valid(local: str, domain: str) -> None:
    email = f"{local}@{domain}.test"
    key = email_addresses.normalize(email)
    if email_addresses.problem(email) is None:
        assert email_addresses.problem(key) is None
        assert email_addresses.normalize(key) == key


@given(st.text(string.ascii_letters + string.digits + "+-_!", min_size=1, max_size=64))
def test_two_cases_of_an_email_share_their_normal_form(local: str) -> None:
    email = f"{local}@Label.test"
    key = email_addresses.normalize(email)
    assert email_addresses.problem(email) is None
    assert email_addresses.normalize(email.upper()) == key == email_addresses.normalize(f" {email.lower()} ")
