"""``nasbot serve``: the page of a study, live."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nasbot.cli._outcome import one_line
from nasbot.errors import FileError, OptionError

if TYPE_CHECKING:
    from nasbot.page.server import Address
    from nasbot.storage import Address as Database

TOKEN_VARIABLE = "NASBOT_TOKEN"


def serve(
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="[STUDY|FOLDER]",
            help="A study's name, file or address, a folder of studies, or a database.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on. Others than this machine's own need a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[
        int | None, typer.Option(help="Port; 0 takes any. The first free one from 8765 on otherwise.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(help="Access token; generated when listening beyond this machine."),
    ] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Host name to accept in requests, beside the address.")
    ] = None,
    follow_links: Annotated[
        bool, typer.Option("--follow-links", help="Show studies of the folder that are symbolic links, too.")
    ] = False,
) -> None:
    """Show a study, or all studies of a folder, as a live page in the browser.

    It only reads: the search does not notice it, and goes on when it ends (Ctrl-C). By default nobody but this machine
    can reach it.
    """
    where = _place(study)
    if port is not None and not 0 <= port <= 65535:
        raise OptionError(f"--port must be 0 to 65535, got {port}")
    try:
        from nasbot.page.guard import is_loopback
        from nasbot.page.server import serve as run
    except ModuleNotFoundError as missing:
        raise OptionError(f"serve needs {missing.name}: install nasbot with its extra, nasbot[web]") from None

    secret = token or os.environ.get(TOKEN_VARIABLE) or (None if is_loopback(host) else secrets.token_urlsafe(24))
    if secret is not None and not secret.isascii():
        raise OptionError("--token: expected ASCII characters")

    def ready(address: Address) -> None:
        print(f"showing {one_line(str(where).rstrip('#'))} at {address.url} (Ctrl-C ends it)", flush=True)

    hosts = allow_host or ()
    run(where, host=host, port=port, token=secret, allowed=hosts, follow_links=follow_links, ready=ready)


def _place(study: str | None) -> Path | Database:
    """A folder or database as it is; a study, which must be there; the studies' folder where nothing is named."""
    from nasbot.storage.addresses import Address as Database
    from nasbot.storage.addresses import address_of, is_address
    from nasbot.storage.opening import is_begun
    from nasbot.storage.paths import DEFAULT_FOLDER, FOLDER_VARIABLE, study_path

    if study is None:
        where = Path(os.environ.get(FOLDER_VARIABLE) or DEFAULT_FOLDER)
        if not where.is_dir():
            raise FileError(f"there is no folder of studies at {where} yet; name a study or a folder")
        return where
    if is_address(study):
        if "#" not in study:
            return Database("", study)
        place = address_of(study)
        if not is_begun(place):
            raise FileError(f"cannot open {place}: there is no such study in this database")
        return place
    if Path(study).is_dir():
        return Path(study)
    where = study_path(study)
    if not where.is_file():
        raise FileError(f"cannot open {where}: there is no such study")
    return where
