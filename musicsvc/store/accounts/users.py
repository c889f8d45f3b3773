"""Accounts: creation, lookup, passwords and suspension."""

from collections.abc import Collection, Sequence
from typing import Any, Literal, NamedTuple

from musicsvc.errors import Conflict, Invalid, existing, require_valid
from musicsvc.store.accounts import email_addresses, user_search
from musicsvc.store.engine import bulk, sql
from musicsvc.store.engine.sql import lock_rows, refusing_duplicates
from musicsvc.store.models import AccessRequest, PasswordLink, User
from musicsvc.store.security import security_events, sessions
from musicsvc.store.security.security_events import Actor, Administrator, Kind
from musicsvc.wording import name_problem

Purpose = Literal["music", "program"]
NAME_LENGTH = 100
NO_ACCOUNT = "There is no account {}."
TAKEN = "The e-mail has already been taken."


def create(
    email: str,
    *,
    display_name: str | None = None,
    password_hash: str | None = None,
    admin: bool = False,
    api_access: bool = False,
    now: int,
    actor: Actor = "cli",
) -> User:
    """Create an account. The name defaults to the e-mail's part before the @. Raises Invalid if the e-mail is taken."""
    email = email.strip()
    name = email.rpartition("@")[0] if display_name is None else display_name.strip()
    display_name_fault = None if display_name is None else name_fault(name)
    require_valid({"email": email_addresses.problem(email), "display_name": display_name_fault})
    with refusing_duplicates(Invalid({"email": TAKEN})):
        user: User = User.create(
            email=email,
            email_key=email_addresses.normalize(email),
            display_name=name,
            password_hash=password_hash,
            admin=admin,
            api_access=api_access,
            created_at=now,
        )
    user_search.add([(user.id, name)])
    security_events.add(
        "account.created", account_id=user.id, reason="administrator" if admin else None, now=now, actor=actor
    )
    if api_access:
        security_events.add("access.granted", account_id=user.id, now=now, actor=actor)
    return user


class NewUser(NamedTuple):
    """An account to create. `external_id` is its id in another service."""

    email: str
    display_name: str
    external_id: str | None = None

    @property
    def email_key(self) -> str:
        return email_addresses.normalize(self.email)


def create_many(people: Sequence[NewUser], *, now: int) -> Sequence[int]:
    """Create accounts without passwords. Return their ids in order. The e-mails and external ids must be unused."""
    ids = bulk.ids(User, len(people))
    rows = [
        (user_id, new.email, new.email_key, new.display_name, new.external_id, now)
        for user_id, new in zip(ids, people, strict=True)
    ]
    bulk.insert(User, ("id", "email", "email_key", "display_name", "external_id", "created_at"), rows)
    user_search.add((user_id, new.display_name) for user_id, new in zip(ids, people, strict=True))
    return ids


def get(user_id: int) -> User:
    """Return the account with this id. Raises NotFound."""
    user: User = existing(User.get_or_none(User.id == user_id), NO_ACCOUNT.format(user_id))
    return user


def find_by_email(email: str) -> User | None:
    """Return the account with this e-mail in any spelling, or None."""
    user: User | None = User.get_or_none(User.email_key == email_addresses.normalize(email))
    return user


def by_email(email: str) -> User:
    """Return the account with this e-mail in any spelling. Raises NotFound."""
    return existing(find_by_email(email), NO_ACCOUNT.format(email))


def first_with_access(besides: Collection[int]) -> User | None:
    """Return the oldest account with API access that is neither suspended, an administrator nor one of `besides`."""
    chosen = User.api_access, ~User.admin, User.suspended_at.is_null(), User.id.not_in(besides)
    found: User | None = User.select().where(*chosen).order_by(User.id).first()
    return found


def emails(ids: Collection[int]) -> dict[int, str]:
    """Return account id → e-mail. Unknown ids are omitted."""
    rows: Any = User.select(User.id, User.email).where(User.id.in_(ids)).tuples()
    return dict(rows)


def list(  # noqa: A001 - the module is the namespace
    *, limit: int | None = None, text: str | None = None, before: int | None = None
) -> Sequence[User]:
    """Return accounts, oldest first: only those with `text` in their e-mail or name, and only the newest `limit`.

    `before`: only those with a smaller id.
    """
    query = User.select() if before is None else User.select().where(User.id < before)
    return user_search.newest_models(query, (User.id, User.email, User.display_name), limit, text)


def lock(user: User, *columns: Any) -> None:
    """Lock the account, and read these columns again, which others may have changed since it was read."""
    for row in lock_rows(User.select(*columns).where(User.id == user.id)):
        for column in columns:
            setattr(user, column.name, getattr(row, column.name))


def missing(ids: Collection[int]) -> set[int]:
    return sql.missing(ids, User)


def set_password(
    user: User, password_hash: str, *, now: int, actor: Actor = "cli", session_id: int | None = None
) -> None:
    """Set the password. Deletes the account's link to set it, and its sessions except `session_id`."""
    user.password_hash = password_hash
    # Changing the account waits for sign-ins, which lock it, so that none of their sessions remains.
    User.update(password_hash=password_hash).where(User.id == user.id).execute()
    sessions.end_all(user.id, but=session_id)
    PasswordLink.delete().where(PasswordLink.user == user.id).execute()
    security_events.add("password.set", account_id=user.id, now=now, actor=actor)


def set_purpose(user_id: int, purpose: Purpose) -> None:
    """Store what the account is for, by which pages choose their words."""
    User.update(purpose=purpose).where(User.id == user_id).execute()


def edit(
    user: User, *, email: str | None = None, display_name: str | None = None, now: int, actor: Actor = "cli"
) -> None:
    """Change the e-mail, the display name or both. Raises Invalid. A new e-mail ends the link to set the password.

    Requests for API access follow to the new e-mail. Raises Conflict if both have a pending one.
    """
    changed = []
    if display_name is not None and display_name.strip() != user.display_name:
        set_display_name(user, display_name)
        changed.append("display name")
    if email is not None and email.strip() != user.email:
        _set_email(user, email.strip())
        changed.append("e-mail")
    if changed:
        security_events.add("account.edited", account_id=user.id, reason=" and ".join(changed), now=now, actor=actor)


def _set_email(user: User, email: str) -> None:
    require_valid({"email": email_addresses.problem(email)})
    key, former = email_addresses.normalize(email), user.email_key
    with refusing_duplicates(Invalid({"email": TAKEN})):
        User.update(email=email, email_key=key).where(User.id == user.id).execute()
    both = f"Requests for API access by {user.email} and by {email} are pending. Decide one first."
    with refusing_duplicates(Conflict(both)):
        AccessRequest.update(email=email, email_key=key).where(AccessRequest.email_key == former).execute()
    PasswordLink.delete().where(PasswordLink.user == user.id).execute()
    user.email, user.email_key = email, key


def set_admin(user: User, *, admin: bool, now: int, actor: Actor = "cli") -> None:
    """Make the account an administrator or, unless it is the last one, an account without this right.

    Raises Conflict if administrators end their own right.
    """
    if user.admin == admin:
        return
    if not admin:
        if isinstance(actor, Administrator) and actor.account_id == user.id:
            raise Conflict("You cannot end your own right. Another administrator can.")
        lock_administrators()
        require_other_administrator(user)
    user.admin = admin
    User.update(admin=admin).where(User.id == user.id).execute()
    kind: Kind = "admin.granted" if admin else "admin.revoked"
    security_events.add(kind, account_id=user.id, now=now, actor=actor)


def lock_administrators() -> None:
    """Keep two administrators from losing this right at the same time."""
    lock_rows(User.select(User.id).where(User.admin).order_by(User.id)).execute()


def require_other_administrator(user: User) -> None:
    """Raise Conflict if the account is an administrator and all others are suspended."""
    others = User.select().where(User.admin, User.id != user.id, User.suspended_at.is_null())
    if user.admin and not others.exists():
        raise Conflict(f"{user.email} is the last administrator. Make another account administrator first.")


def set_display_name(user: User, name: str) -> None:
    """Change the display name. Raises Invalid if it is too long or empty."""
    name = name.strip()
    require_valid({"display_name": name_fault(name)})
    lock(user, User.display_name)
    user_search.remove(user.id, user.display_name)
    user_search.add([(user.id, name)])
    user.display_name = name
    User.update(display_name=name).where(User.id == user.id).execute()


def suspend(user: User, *, now: int, reason: str | None = None, actor: Actor = "cli") -> None:
    """Suspend the account unless it is already suspended. Ends its sessions; calls with its tokens get 403.

    Raises Conflict if administrators suspend their own account, so that at least one administrator remains.
    """
    if isinstance(actor, Administrator):
        _check_suspender(actor.account_id, user.id)
    if user.suspended_at is None:
        user.suspended_at, user.suspended_reason = now, reason
        _save_suspension(user)
        sessions.end_all(user.id)
        security_events.add("account.suspended", account_id=user.id, reason=reason, now=now, actor=actor)


def _check_suspender(admin_id: int, user_id: int) -> None:
    """Raise Conflict if both ids are the same, or if the administrator is suspended or is none any more."""
    if admin_id == user_id:
        raise Conflict("You cannot suspend your own account. Another administrator can.")
    # The lock keeps two administrators from suspending each other, or one the other that ends its right, at one time.
    for account in lock_rows(User.select().where(User.id.in_([admin_id, user_id])).order_by(User.id)):
        if account.id == admin_id and (account.suspended_at is not None or not account.admin):
            raise Conflict("Your own account is suspended, or no longer an administrator.")


def reinstate(user: User, *, now: int, actor: Actor = "cli") -> None:
    """Reinstate a suspended account. Its tokens work again unless they are expired or revoked."""
    if user.suspended_at is not None:
        user.suspended_at = user.suspended_reason = None
        _save_suspension(user)
        security_events.add("account.reinstated", account_id=user.id, now=now, actor=actor)


def _save_suspension(user: User) -> None:
    lock(user, User.display_name)
    changed = {User.suspended_at: user.suspended_at, User.suspended_reason: user.suspended_reason}
    User.update(changed).where(User.id == user.id).execute()
    user_search.remove(user.id, user.display_name)
    if user.suspended_at is None:
        user_search.add([(user.id, user.display_name)])


def name_fault(name: str) -> str | None:
    """Return what is wrong with a display name, or None."""
    if 1 <= len(name) <= NAME_LENGTH:
        return name_problem(name)
    return f"The display name must have 1 to {NAME_LENGTH} characters."


def is_taken(email: str) -> bool:
    return find_by_email(email) is not None
