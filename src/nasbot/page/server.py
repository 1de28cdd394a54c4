"""The server of the live page: which address answers what, and how it runs.

    /                       the only study, or a list of them
    /s/NAME/                the page
    /s/NAME/api/…           study, tick, events, series/…, trial/N, near/N, figure/…, compare, table, trials.csv,
                            trials.json, model.safetensors
    /s/NAME/drawing/N.svg   a network
    /static/…               the page's own files

Names, series and files are looked up in tables; no part of a request ever becomes a path.
"""

from __future__ import annotations

import asyncio
import html
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from nasbot._system import be_nice
from nasbot.drawing.draw import to_svg
from nasbot.errors import FileError, OptionError
from nasbot.page.guard import Guard, Rules, bracketed, is_loopback, is_wildcard
from nasbot.page.html import SCRIPTS, STYLE, live_html, static_file
from nasbot.page.model_file import ModelFiles
from nasbot.page.payload import SERIES, as_json, compare_record, series_json
from nasbot.page.protocol import PatientProtocol
from nasbot.page.records import trial_record, whole_trial_record
from nasbot.page.tables import detail_names, param_names, trials_csv
from nasbot.page.watching import Seen, WatchedStudy
from nasbot.page.worker import FigureWorker
from nasbot.plots.meaning import data_of, meaning_of
from nasbot.plots.rungs import why_of
from nasbot.storage import Address as Database
from nasbot.storage.opening import studies_in
from nasbot.storage.paths import SUFFIX
from nasbot.storage.tally import trials_in_words
from nasbot.trial import Trial

Answer = TypeVar("Answer")

TICK_SECONDS = 1.0
MAX_LISTENERS = 60  # each holds a connection open; further pages ask every two seconds instead
MAX_STUDIES = 200
MAX_COMPARED = 30
ROWS_PER_PAGE = 100
FIGURES = ("map", "surrogate", "params")
EVENTS = "text/event-stream"
PORT = 8765
PORTS_TRIED = 20
SEND_BUFFER = 2**16  # bytes
NICENESS = 5


@dataclass(frozen=True)
class Address:
    """Where a server listens, and what a browser is told to open."""

    host: str
    port: int
    token: str | None = None

    @property
    def url(self) -> str:
        """With the token, where there is one; a wildcard bind is reached by the machine's own name for itself."""
        host = "127.0.0.1" if is_wildcard(self.host) else bracketed(self.host)
        return f"http://{host}:{self.port}/" + (f"?token={self.token}" if self.token else "")


class LivePage:
    """The studies served, and the answers about them."""

    def __init__(self, where: Path | Database, *, follow_links: bool = False) -> None:
        self._where = where  # a study, a folder of them, or a database (an address without a name)
        self._follow_links = follow_links  # of files in a folder; what is named itself may be a link
        self._studies: dict[str, WatchedStudy] = {}
        self._reader = ThreadPoolExecutor(
            1, "nasbot-reader"
        )  # one: SQLite's connections stay in it, and so does the load
        self._figures = FigureWorker()
        self._models = ModelFiles()
        self._listeners = 0
        self.closing = asyncio.Event()
        self._find()

    def routes(self) -> list[Route]:
        """Every address that is answered."""
        study = "/s/{name}"
        return [
            Route("/", self.index),
            Route("/static/{file}", self.static),
            Route("/favicon.ico", self.favicon),
            Route(f"{study}/", self.page),
            Route(f"{study}/api/study", self.study),
            Route(f"{study}/api/tick", self.tick),
            Route(f"{study}/api/events", self.events),
            Route(f"{study}/api/series/{{series}}", self.series),
            Route(f"{study}/api/trial/{{number:int}}", self.trial),
            Route(f"{study}/api/near/{{number:int}}", self.near),
            Route(f"{study}/api/figure/{{figure}}", self.figure),
            Route(f"{study}/api/compare", self.compare),
            Route(f"{study}/api/model.safetensors", self.model),
            Route(f"{study}/api/table", self.table),
            Route(f"{study}/api/trials.csv", self.csv),
            Route(f"{study}/api/trials.json", self.json),
            Route(f"{study}/drawing/{{number:int}}.svg", self.drawing),
        ]

    async def look_once(self) -> None:
        """Read the study, if there is only one: at a glance and, where that is not all, once more."""
        if len(self._studies) == 1:
            study = next(iter(self._studies.values()))
            await self._seen(study)
            if study.large is not None:
                await asyncio.sleep(study.pace)
                await self._seen(study)

    async def close(self) -> None:
        """Let go of everything."""
        self.closing.set()
        await self._figures.close()
        for study in self._studies.values():
            await self._read(study.close)
        self._reader.shutdown(wait=False)

    # -- pages ---------------------------------------------------------------------------------------------------------

    async def index(self, request: Request) -> Response:
        """The only study, or the list of studies."""
        await self._read(self._find)
        if len(self._studies) == 1 and not self._is_folder():
            return RedirectResponse(f"s/{next(iter(self._studies))}/", status_code=HTTPStatus.SEE_OTHER)
        newest = sorted(self._studies.values(), key=lambda study: (-study.changed_at(), study.name))
        rows = [await self._row(study) for study in newest[:MAX_STUDIES]]
        body = _STUDIES.format(rows="".join(rows)) if rows else "<p>There is no study here yet.</p>"
        folder = self._where.name if isinstance(self._where, Path) else str(self._where).rstrip("#")
        return Response(_INDEX.format(style=STYLE, folder=html.escape(folder), body=body), media_type="text/html")

    async def _row(self, study: WatchedStudy) -> str:
        seen = await self._seen(study)
        strip, settings = seen.strip(), seen.snapshot.settings
        best = strip.get("best")
        state = html.escape(str(strip["state"]))
        cells = [
            f'<a href="s/{html.escape(study.name)}/">{html.escape(study.name)}</a>',
            f'<span class="badge {state}">{state}</span>',
            html.escape(data_of(settings) or ("own objective" if settings else "")),
            html.escape(str(meaning_of(settings)) if settings else ""),
            html.escape(seen.problem or trials_in_words(strip)),
            f"{best['value']:.6g}" if isinstance(best, dict) else "–",
            time.strftime("%Y-%m-%d %H:%M", time.localtime(study.changed_at())),
        ]
        return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"

    async def page(self, request: Request) -> Response:
        """The page, which asks for all the rest."""
        if request.path_params["name"] not in self._studies:
            await self._read(self._find)  # it may be new
        self._study(request)
        return Response(live_html(), media_type="text/html")

    async def static(self, request: Request) -> Response:
        """A file of the page."""
        name = request.path_params["file"]
        if name not in (*SCRIPTS, STYLE):
            return _nothing("there is no such file")
        return Response(static_file(name), media_type="text/css" if name == STYLE else "text/javascript")

    async def favicon(self, request: Request) -> Response:
        """None, quietly."""
        return Response(status_code=HTTPStatus.NO_CONTENT)

    # -- data ----------------------------------------------------------------------------------------------------------

    async def study(self, request: Request) -> Response:
        """Everything small about the study, or what changed since a revision."""
        seen = await self._seen(self._study(request))
        since = -1
        if request.query_params.get("epoch") == seen.epoch:
            with suppress(ValueError):
                since = int(request.query_params.get("since", "-1"))
        is_whole = not 0 <= since <= seen.revision
        kept = [text for text, at in zip(seen.records, seen.changed, strict=True) if is_whole or at > since]
        return _json(
            f'{{"epoch":{as_json(seen.epoch)},"revision":{seen.revision},"whole":{as_json(is_whole)},'
            f'"strip":{as_json(seen.strip())},"about":{seen.about},"trials":[{",".join(kept)}]}}'
        )

    async def tick(self, request: Request) -> Response:
        """What the events say, for pages that have to ask."""
        return _json(await self._tick(self._study(request)))

    async def events(self, request: Request) -> Response:
        """One event a second: the state, and which revision there is."""
        study = self._study(request)
        if self._listeners >= MAX_LISTENERS:
            return _refused("too many pages listen; this one asks instead")
        if request.method == "HEAD":  # its answer has no body, so nobody would notice when it goes on for ever
            return Response(media_type=EVENTS)

        async def ticks() -> AsyncIterator[str]:
            while not self.closing.is_set():
                yield f"event: tick\ndata: {await self._tick(study)}\n\n"
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.closing.wait(), TICK_SECONDS)

        self._listeners += 1  # here, and not when the first event is sent: many may ask at the same time
        return _Stream(ticks(), self._left)

    def _left(self) -> None:
        self._listeners -= 1

    async def _tick(self, study: WatchedStudy) -> str:
        seen = await self._seen(study)
        return as_json({"epoch": seen.epoch, "revision": seen.revision, "pace": study.pace, "strip": seen.strip()})

    async def series(self, request: Request) -> Response:
        """The numbers of one plot."""
        name = request.path_params["series"]
        if name not in SERIES:
            return _nothing("there is no such series")
        seen = self._study(request).seen
        if name not in seen.texts:
            seen.texts[name] = await self._read(lambda: series_json(name, seen.snapshot))
        return _json(seen.texts[name])

    async def trial(self, request: Request) -> Response:
        """Everything about one trial."""
        trial = await self._trial(request)
        if trial is None:
            return _nothing("there is no such trial")
        snapshot = self._study(request).seen.snapshot
        return _json(await self._read(lambda: as_json(whole_trial_record(trial, why_of(snapshot, trial)))))

    async def drawing(self, request: Request) -> Response:
        """A trial's network as SVG."""
        trial = await self._trial(request)
        if trial is None:
            return _nothing("there is no such trial")
        return Response(await self._read(lambda: to_svg(trial.arch)), media_type="image/svg+xml")

    async def near(self, request: Request) -> Response:
        """What is near to a trial's network, computed once: what was known at its proposal never changes."""
        study = self._study(request)
        trial = await self._trial(request)
        if trial is None:
            return _nothing("there is no such trial")
        return _json(self._figures.answer(study.place, study.seen.revision, "near", str(trial.number), changes=False))

    async def figure(self, request: Request) -> Response:
        """A figure that the worker computes."""
        name = request.path_params["figure"]
        if name not in FIGURES:
            return _nothing("there is no such figure")
        study = self._study(request)
        return _json(self._figures.answer(study.place, study.seen.revision, "figure", name, changes=True))

    async def compare(self, request: Request) -> Response:
        """The studies served, side by side, this one first."""
        await self._read(self._find)
        mine = self._study(request)
        others = [study for study in self._studies.values() if study is not mine]
        shown = [(study, await self._seen(study)) for study in [mine, *others][:MAX_COMPARED]]
        rows = [
            (seen.snapshot, {"address": f"../{study.name}/", "state": str(seen.strip()["state"])})
            for study, seen in shown
            if seen.snapshot.settings
        ]
        return _json(await self._read(lambda: as_json(compare_record(rows))))

    async def model(self, request: Request) -> Response:
        """The recommended model as a file for ``nasbot.load_model``."""
        study = self._study(request)
        if isinstance(study.path, Database):
            return _nothing("the model of a study in a database is beside its driver; nasbot export writes it")
        try:
            content = await self._models.content(study.path)
        except FileError as error:
            return _nothing(str(error))
        headers = _as_file(f"{study.name}.safetensors")
        return Response(content, media_type="application/octet-stream", headers=headers)

    async def csv(self, request: Request) -> Response:
        """All trials, for a spreadsheet."""
        study = self._study(request)
        seen = await self._seen(study)
        names = await self._read(lambda: (detail_names(seen.snapshot), param_names(seen.snapshot)))
        return self._in_parts(trials_csv(study.all_trials(), *names), "text/csv", f"{seen.snapshot.name}.csv")

    async def json(self, request: Request) -> Response:
        """All trials, as JSON."""
        study = self._study(request)
        seen = await self._seen(study)

        def parts() -> Iterator[str]:
            for i, trial in enumerate(study.all_trials()):
                yield f"{',' if i else '['}{as_json(trial_record(trial))}"
            yield "]" if seen.records else "[]"

        return self._in_parts(parts(), "application/json", f"{seen.snapshot.name}.json")

    async def table(self, request: Request) -> Response:
        """A page of the table of a study of very many trials, sorted and filtered here."""
        study = self._study(request)
        await self._seen(study)
        large = study.large
        if large is None:
            return _nothing("this study is small: its trials are all in api/study")
        n, trials = await self._read(lambda: large.page(request.query_params, ROWS_PER_PAGE))
        return _json(as_json({"n": n, "trials": [trial_record(trial) for trial in trials]}))

    def _in_parts(self, parts: Iterator[str], media_type: str, name: str) -> Response:
        """A download that is made while it is sent, in the thread that reads."""

        async def made() -> AsyncIterator[str]:
            while (part := await self._read(lambda: next(parts, None))) is not None:
                yield part

        return StreamingResponse(made(), media_type=media_type, headers=_as_file(name))

    # -- inside --------------------------------------------------------------------------------------------------------

    def _find(self) -> None:
        """The studies there are, by name; those known keep what was read of them."""
        if not self._is_folder():
            places: Sequence[Path | Database] = [self._where]
        elif isinstance(self._where, Database):
            try:
                places = studies_in(self._where.database)[:MAX_STUDIES]
            except FileError:
                if self._studies:
                    return  # the server is away for a while: those that are known
                raise
        else:
            found_here = (file for file in self._where.iterdir() if file.suffix == SUFFIX)
            places = sorted(file for file in found_here if self._follow_links or not file.is_symlink())[:MAX_STUDIES]
        found = {name_of(place): place for place in places}
        self._studies = {
            name: self._studies.get(name) or WatchedStudy(place, name, glances=True) for name, place in found.items()
        }

    def _is_folder(self) -> bool:
        return not self._where.name if isinstance(self._where, Database) else self._where.is_dir()

    def _study(self, request: Request) -> WatchedStudy:
        study = self._studies.get(request.path_params["name"])
        if study is None:
            raise _NotFoundError
        return study

    async def _trial(self, request: Request) -> Trial | None:
        study, number = self._study(request), request.path_params["number"]
        return await self._read(lambda: study.trial(number))

    async def _seen(self, study: WatchedStudy) -> Seen:
        return await self._read(study.look)

    async def _read(self, work: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._reader, work)


class _NotFoundError(Exception):
    """No study of that name is served."""


def name_of(file: Path | Database) -> str:
    """A study's name in a URL: that of its file, without what a URL would have to escape."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in file.stem)[:100] or "study"


def make_app(page: LivePage, rules: Rules | None = None) -> Guard:
    """The page's server behind its guard."""

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        first = asyncio.create_task(page.look_once())  # so that a large study is read before somebody asks
        try:
            yield
        finally:
            first.cancel()
            await page.close()

    async def not_found(request: Request, error: Exception) -> Response:
        return _nothing("there is nothing at this address")

    app = Starlette(routes=page.routes(), lifespan=life, exception_handlers={404: not_found, _NotFoundError: not_found})
    app.router.redirect_slashes = False
    return Guard(app, rules or Rules())


# -- running -----------------------------------------------------------------------------------------------------------


def serve(
    where: str | Path | Database,
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    token: str | None = None,
    allowed: Sequence[str] = (),
    follow_links: bool = False,
    ready: Callable[[Address], None] = lambda address: None,
) -> None:
    """Serve until interrupted. ``port`` None takes the first free one from 8765 on, 0 any.

    ``follow_links`` shows studies of a folder that are symbolic links, which may lead out of it.

    Raises OptionError for a bind beyond this machine without a token, FileError where the port cannot be had.
    """
    if not is_loopback(host) and not token:
        raise OptionError(f"host: {host} can be reached from other machines; that needs a token")
    listening = _bound(host, port)
    address = Address(host, listening.getsockname()[1], token)
    be_nice(NICENESS)  # the search goes first
    page = LivePage(where if isinstance(where, Database) else Path(where), follow_links=follow_links)
    config = uvicorn.Config(
        make_app(page, Rules.of(host, token=token, allowed=allowed)),
        http=PatientProtocol,
        ws="none",
        lifespan="on",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=16_384,
        limit_concurrency=200,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=2,
    )
    server = _Server(config, started=lambda: ready(address), ending=page.closing.set)
    with suppress(KeyboardInterrupt):  # how a server ends
        server.run(sockets=[listening])


class _Server(uvicorn.Server):
    """Says when it listens, and ends the open event streams before it waits for connections to close."""

    def __init__(self, config: uvicorn.Config, *, started: Callable[[], None], ending: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_start, self._on_end = started, ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and say so."""
        await super().startup(sockets)
        if self.started:
            self._on_start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let the pages go."""
        self._on_end()
        await super().shutdown(sockets)


def _bound(host: str, port: int | None) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ports = range(PORT, PORT + PORTS_TRIED) if port is None else (port,)
    problem: OSError | None = None
    for each in ports:
        # asyncio switches Nagle's delay off, 40 ms for every answer, only where a socket says that it is TCP.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            # Little is buffered for whoever does not read: that is noticed, and PatientProtocol ends it.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
            listening.bind((host.strip("[]"), each))
            listening.set_inheritable(False)
        except (OSError, OverflowError) as error:
            listening.close()
            problem = error if isinstance(error, OSError) else OSError(str(error))
        else:
            return listening
    reason = problem.strerror or str(problem) if problem is not None else "no port"
    raise FileError(f"cannot listen on {host}:{ports[-1]}: {reason}; --port names another, 0 takes any")


# -- answers -----------------------------------------------------------------------------------------------------------

_STUDIES = """<div class="scroll"><table><caption class="quiet">the latest first</caption><thead><tr><th>study</th>
<th>state</th><th>data</th><th>metric</th><th>trials</th><th>best</th><th>last change</th></tr></thead>
<tbody>{rows}</tbody></table></div>"""

_INDEX = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>studies – nasbot</title><link rel="stylesheet" href="static/{style}"></head>
<body><header><div class="bar"><span class="brand">nasbot</span><h1>Studies in {folder}</h1></div></header>
<main>{body}</main></body></html>
"""


def _json(text: str) -> Response:
    return Response(text, media_type="application/json")


class _Stream(StreamingResponse):
    """Events, and a word when nobody listens to them any more, whether or not the first one was sent."""

    def __init__(self, events: AsyncIterator[str], left: Callable[[], None]) -> None:
        super().__init__(events, media_type=EVENTS)
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._left()


def _nothing(words: str) -> Response:
    return Response(f"404 Not Found: {words}\n", status_code=HTTPStatus.NOT_FOUND, media_type="text/plain")


def _refused(words: str) -> Response:
    return Response(f"503: {words}\n", status_code=HTTPStatus.SERVICE_UNAVAILABLE, media_type="text/plain")


def _as_file(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{name}"'}
