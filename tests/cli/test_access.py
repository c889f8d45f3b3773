"""`musicsvc access`."""

import re

from tests.cli.conftest import Json, Run

EMAIL = "ada@example.test"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
WISH = ("--use-case", "A player", "--volume", "100 a day", "--organization", "Engines Ltd")


def test_access_is_granted_with_and_without_plays_and_revoked(ask: Json, run: Run) -> None:
    run("user", "create", EMAIL)
    rights = [
        (user["api_access"], user["reports_plays"])
        for user in (
            ask("access", "grant", EMAIL),
            ask("access", "grant", "ADA@example.test", "--plays"),
            ask("access", "revoke", EMAIL),
        )
    ]
    assert rights == [(True, False), (True, True), (False, False)]
    nobody = run("access", "grant", "o'neil@example.test", expect=1).stderr
    assert nobody == "Error: There is no account o'neil@example.test. Run: musicsvc user create {}\n".format(
        "'o'\"'\"'neil@example.test'"
    )


def test_a_request_is_listed_approved_and_its_account_gets_a_token(ask: Json, run: Run) -> None:
    asked = ask("access", "request", EMAIL, *WISH)
    assert re.fullmatch(TIME, asked["requested_at"])
    assert asked == {
        "id": 1,
        "email": EMAIL,
        "state": "pending",
        "use_case": "A player",
        "volume": "100 a day",
        "organization": "Engines Ltd",
        "reason": None,
        "requested_at": asked["requested_at"],
        "decided_at": None,
    }
    assert "is pending already" in run("access", "request", EMAIL, *WISH, expect=1).stderr
    account = {"request_id": asked.pop("id"), "user_id": None, "api_access": False, "reports_plays": False}
    assert ask("access", "list") == [asked | account]
    done = run("access", "approve", EMAIL)
    assert done.stderr == (
        f"Request 1 is approved: {EMAIL} has API access. Account 1 was created for it.\n"
        "No running server was found: the link has the address of the settings, http://127.0.0.1:8080.\n"
    )
    assert re.fullmatch(r"http://127.0.0.1:8080/password/[\w-]{43}\n", done.stdout)
    assert run("token", "create", EMAIL, "--name", "first").stdout.startswith("msvc_")
    again = ("access", "approve", EMAIL.upper())
    already = f"Error: Request 1 by {EMAIL} is approved already."
    assert run(*again, expect=1).stderr == f"{already}\n"
    run("access", "revoke", EMAIL)
    (row,) = ask("access", "list")
    assert re.fullmatch(TIME, row["decided_at"])
    assert (row["state"], row["user_id"], row["api_access"]) == ("approved", 1, False)
    hint = f"Access was revoked since. Run: musicsvc access grant {EMAIL}"
    assert run(*again, expect=1).stderr == f"{already} {hint}\n"
    assert run("access", "deny", "1", "--reason", "no", expect=1).stderr == f"{already}\n"


def test_an_approval_of_an_account_without_a_request_names_the_command_that_grants_access(run: Run) -> None:
    run("user", "create", EMAIL)
    run("access", "grant", EMAIL)
    run("access", "revoke", EMAIL)
    missing = f"Error: There is no access request by {EMAIL}."
    hint = f"To give the account access, run: musicsvc access grant {EMAIL}"
    assert run("access", "approve", EMAIL, expect=1).stderr == f"{missing} {hint}\n"
    assert run("access", "deny", EMAIL, "--reason", "no", expect=1).stderr == f"{missing}\n"
    assert run("access", "approve", "7", expect=1).stderr == "Error: There is no access request 7.\n"


def test_json_has_the_password_link_of_a_new_account_alone(ask: Json, run: Run) -> None:
    for email in (EMAIL, "bob@example.test"):
        ask("access", "request", email, *WISH)
    assert "/password/" in ask("access", "approve", EMAIL)["password_link"]
    run("user", "create", "bob@example.test")
    approved = ask("access", "approve", "bob@example.test")
    assert (approved["state"], approved["password_link"]) == ("approved", None)

    ask("access", "request", "cleo@example.test", *WISH)
    run("user", "create", "cleo@example.test")
    done = run("access", "approve", "3")
    assert done.stdout == ""
    assert done.stderr.endswith("has API access. Account 3 existed already.\n")


def test_tokens_that_work_because_of_a_grant_are_named(ask: Json, run: Run) -> None:
    run("user", "create", EMAIL)
    assert ask("access", "grant", EMAIL)["tokens"] == []
    values = {name: run("token", "create", EMAIL, "--name", name).stdout.strip() for name in ("laptop", "phone")}
    run("token", "revoke", "1", "--reason", "lost")
    run("access", "revoke", EMAIL)
    granted = run("access", "grant", EMAIL)
    assert granted.stderr == (
        f"{EMAIL} has API access.\nThese tokens of the account work now. Revoke those that its owner does not know.\n"
    )
    row = rf"2  +phone  +{values['phone'][-4:]}  +\d{{4}}-\d\d-\d\d \d\d:\d\d"
    assert re.fullmatch(rf"id  name   last four  created \(UTC\)\n{row}\n", granted.stdout)
    assert run("access", "grant", EMAIL).stdout == ""

    run("access", "revoke", EMAIL)
    ask("access", "request", EMAIL, *WISH)
    approved = ask("access", "approve", EMAIL)
    (token,) = approved.pop("tokens")
    assert (token["id"], token["name"], token["last_four"]) == (2, "phone", values["phone"][-4:])
    assert re.fullmatch(TIME, token["created_at"])
    assert approved["password_link"] is None


def test_a_denial_keeps_its_reason_and_needs_one(ask: Json, run: Run) -> None:
    asked = ask("access", "request", EMAIL, *WISH)
    run("access", "deny", EMAIL, expect=2)
    run("access", "deny", EMAIL, "--reason", " ", expect=1)
    assert ask("access", "deny", str(asked["id"]), "--reason", "Too vague.")["reason"] == "Too vague."
    (row,) = ask("access", "list")
    assert (row["state"], row["reason"], row["user_id"]) == ("denied", "Too vague.", None)


def test_a_request_without_its_particulars_is_wrong_usage(run: Run) -> None:
    run("access", "request", EMAIL, "--use-case", "x", expect=2)
