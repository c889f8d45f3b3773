"""Password rules and hashes."""

import pytest

from musicsvc.store.accounts import passwords

EMAIL = "Ada.Lovelace@example.test"


def test_a_password_is_hashed_with_argon2id_by_owasp_and_verified() -> None:
    hashed = passwords.hash_password("correct horse")
    assert hashed.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert passwords.verify(hashed, "correct horse")
    assert not passwords.verify(hashed, "correct horse ")
    assert not passwords.verify("no hash", "correct horse")


def test_no_hash_costs_as_much_as_any_and_never_matches() -> None:
    assert not passwords.HASHER.check_needs_rehash(passwords.NOBODYS)
    hashed = passwords.hash_password("correct horse")
    assert passwords.matches(hashed, "correct horse")
    assert not passwords.matches(hashed, "another horse")
    assert not passwords.matches(None, "correct horse")


@pytest.mark.parametrize("password", ["1234567", "x" * 129, "", EMAIL, EMAIL.swapcase()])
def test_too_short_too_long_or_the_email_is_refused(password: str) -> None:
    assert passwords.check(password, email=EMAIL, hosted=False)


@pytest.mark.parametrize("password", ["12345678", "x" * 128, "密码密码密码密码", "        "])
def test_length_counts_code_points_and_nothing_is_trimmed(password: str) -> None:
    assert passwords.check(password, email=EMAIL, hosted=False) is None


def test_the_commonest_are_refused_only_on_a_hosted_service() -> None:
    for password in ("password", "Password", "12345678"):
        assert passwords.check(password, email=EMAIL, hosted=False) is None
        assert "most common" in str(passwords.check(password, email=EMAIL, hosted=True))
    assert passwords.check("an uncommon phrase", email=EMAIL, hosted=True) is None
