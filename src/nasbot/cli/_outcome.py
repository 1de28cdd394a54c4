"""From whatever a command did or raised to an exit code, with at most one line on standard error."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

from nasbot.errors import FileError, NasbotError

USAGE = 2
BUG = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # 128 + SIGINT, as shells say it
BROKEN_PIPE = 141  # 128 + SIGPIPE
UNWRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}  # what a full disk or closed file says
DEBUG_VARIABLE = "NASBOT_DEBUG"


def exit_code_of(command: Callable[[], int]) -> int:
    """Run ``command``; its exit code, or that of what it raised."""
    try:
        _never_fail_to_encode(sys.stdout)
        code = command()
        if sys.stdout is not None:  # closed before we began: whoever did so wants no output
            sys.stdout.flush()  # here, where a reader that went away is still noticed
        return code
    except NasbotError as error:
        complain(f"error: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        complain("interrupted")
        return INTERRUPTED
    except MemoryError:
        complain("error: there is not enough memory for this; give it smaller data or networks, or a larger machine")
        return NasbotError.exit_code
    except BrokenPipeError:
        _discard_output()
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in UNWRITTEN:
            return _other(error)
        complain(f"error: the output cannot be written: {error.strerror}")
        _discard_output()
        return FileError.exit_code
    except Exception as error:  # noqa: BLE001  # the boundary: whatever is left is a bug, and is reported as one
        return _other(error)


def complain(message: str) -> None:
    """One line on standard error; what is not printable in ``message`` is escaped, so that it stays one line."""
    with suppress(OSError):  # nobody is listening, and there is no other place to say so
        print(f"nasbot: {one_line(message)}", file=sys.stderr)


def one_line(text: str) -> str:
    """``text`` with line breaks, terminal control codes, direction marks and lone surrogates escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _other(error: Exception) -> int:
    # Typer's own errors share no public base class across its versions; all of them format their message.
    usage = getattr(error, "format_message", None)
    if usage is not None:
        complain(f"error: {_usage_line(error, ' '.join(str(usage()).split()))}")
        return USAGE
    if type(error).__name__ == "Abort":  # Typer's word for end of input at a prompt
        complain("interrupted")
        return INTERRUPTED
    complain(
        f"this is a bug, please report it: {type(error).__name__}: {str(error)[:200]} ({DEBUG_VARIABLE}=1 shows where)"
    )
    if os.environ.get(DEBUG_VARIABLE) == "1":
        traceback.print_exception(error)
    return BUG


def _usage_line(error: Exception, message: str) -> str:
    path = getattr(getattr(error, "ctx", None), "command_path", "nasbot")
    return f"{message.rstrip('.')}; see {path} --help"


def _never_fail_to_encode(stream: TextIO | None) -> None:
    """Where the terminal's encoding lacks a character it is escaped, rather than fail half-way through a table."""
    reconfigure = getattr(stream, "reconfigure", None)
    if stream is not None and reconfigure is not None and stream.errors == "strict":
        reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Point standard output at nothing, so that Python's last flush at exit does not complain."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
