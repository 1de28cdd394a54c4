"""Studies in a database: ``postgresql://user@host/database#study``, and how to show that without its password."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from nasbot.errors import OptionError
from nasbot.storage.paths import NAME, NAME_RULE, study_path

FORM = "postgresql://user@host/database#study"
_ADDRESS = re.compile(r"postgres(?:ql)?://\S*")
_SECRETS = ("password", "sslpassword", "oauth_client_secret", "passfile")


@dataclass(frozen=True)
class Address:
    """One study of a database. What is shown of it, ``str`` and ``repr``, has no password."""

    name: str
    database: str = field(repr=False)  # as libpq takes it, with a password if one was given

    @property
    def stem(self) -> str:
        """What files made from the study are called after, as of a Path."""
        return self.name

    @property
    def whole(self) -> str:
        """With its password, for another process of ours; never to be shown."""
        return f"{self.database}#{self.name}"

    def __str__(self) -> str:
        return f"{without_password(self.database)}#{self.name}"

    def __repr__(self) -> str:
        return f"Address({str(self)!r})"


def is_address(where: object) -> bool:
    """Whether this names a database and not a file."""
    return isinstance(where, str) and _ADDRESS.match(where) is not None


def address_of(where: str | Address) -> Address:
    """The study at this address; OptionError where it names none."""
    if isinstance(where, Address):
        return where
    database, _, name = where.rpartition("#")
    if not NAME.fullmatch(name):  # which is not shown: it may be a part of a password
        raise OptionError(
            f"study: expected the address of a database with a study's name at its end, {FORM}; {NAME_RULE}"
        )
    return Address(name, database)


def without_password(text: str) -> str:
    """The text with every address in it as it may be shown and stored: without what only its user should know."""
    return _ADDRESS.sub(lambda found: _stripped(found[0]), text)


def _stripped(address: str) -> str:
    """By hand, since a password may hold characters that end a part of a proper address."""
    scheme, _, rest = address.partition("://")
    owner, at, place = rest.rpartition("@")
    if "/" in owner:  # not a user: an @ further on
        owner, at, place = "", "", rest
    before, mark, fragment = place.rpartition("#") if "#" in place else (place, "", "")
    path, question, query = before.partition("?")
    kept = "&".join(part for part in query.split("&") if part.partition("=")[0] not in _SECRETS)
    return f"{scheme}://{owner.partition(':')[0]}{at}{path}{question * bool(kept)}{kept}{mark}{fragment}"


def place_of(where: str | Path | Address) -> Path | Address:
    """Where a study is: a file, or an address in a database."""
    if isinstance(where, Address) or (isinstance(where, str) and is_address(where)):
        return address_of(where)
    return study_path(where)
