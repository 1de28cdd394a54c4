"""What many clients at once, or clients that take nothing, cannot do to the server."""

import asyncio
import json
import os

import pytest
import uvicorn
from starlette.requests import ClientDisconnect, Request
from uvicorn.server import ServerState

from nasbot.page import protocol, server, watching
from nasbot.page.server import LivePage
from nasbot.page.watching import WatchedStudy
from nasbot.storage import open_storage
from tests.page.conftest import serving, write_study
from tests.page.test_security import ask
from tests.plots.studies import grown
from tests.storage.test_cycles import make_endless


def request():
    return Request(
        {"type": "http", "method": "GET", "path_params": {"name": "forty"}, "headers": [], "query_string": b""}
    )


def test_streams_are_counted_before_any_event_is_sent(study_file, monkeypatch):
    monkeypatch.setattr(server, "MAX_LISTENERS", 3)

    async def crowd():
        page = LivePage(study_file)
        answers = [await page.events(request()) for _ in range(5)]
        statuses = [answer.status_code for answer in answers]

        async def nobody(*_):
            raise OSError("gone before the first event")

        for answer in answers[:3]:
            with pytest.raises(ClientDisconnect):
                await answer({"type": "http", "asgi": {"spec_version": "2.4"}}, nobody, nobody)
        statuses.append((await page.events(request())).status_code)
        await page.close()
        return statuses

    assert asyncio.run(crowd()) == [200, 200, 200, 503, 503, 200]


@pytest.mark.parametrize("reads", [False, True])
def test_who_reads_nothing_of_an_answer_is_dropped(reads, monkeypatch):
    monkeypatch.setattr(protocol, "READING_SECONDS", 0.5)

    async def answer(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(400):
            await send({"type": "http.response.body", "body": bytes(2**16), "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def dropped():
        config = uvicorn.Config(answer, lifespan="off", log_level="critical")
        config.load()
        loop, state, made = asyncio.get_running_loop(), ServerState(), []

        class Watched(protocol.PatientProtocol):
            def __init__(self):
                super().__init__(config, state, {})
                self.lost = loop.create_future()
                made.append(self)

            def connection_lost(self, exc):
                super().connection_lost(exc)
                self.lost.set_result(None)

        listening = await loop.create_server(Watched, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        if reads:
            taken = 0
            while block := await reader.read(2**16):
                taken += len(block)
            got_all = taken > 400 * 2**16
        else:
            await asyncio.wait_for(made[0].lost if made else _made(made), 120)
            got_all = False
        writer.close()
        listening.close()
        return not got_all

    async def _made(made):
        while not made:
            await asyncio.sleep(0.01)
        await made[0].lost

    assert asyncio.run(dropped()) is not reads


def test_links_in_a_folder_are_not_followed_unless_asked(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    secret = write_study(tmp_path / "secret.sqlite", grown(3))
    write_study(folder / "mine.sqlite", grown(3))
    (folder / "theirs.sqlite").symlink_to(secret)

    async def names(where, **options):
        page = LivePage(where, **options)
        found = sorted(page._studies)
        await page.close()
        return found

    assert asyncio.run(names(folder)) == ["mine"]
    assert asyncio.run(names(folder, follow_links=True)) == ["mine", "theirs"]
    assert asyncio.run(names(folder / "theirs.sqlite")) == ["theirs"], "what is named may be a link"


def test_one_bad_study_in_a_folder_never_blocks_another(tmp_path):
    """Tables without end, and a pipe; the sound study is read in between."""
    write_study(tmp_path / "sound.sqlite", grown(3))
    write_study(tmp_path / "bad.sqlite", grown(3))
    make_endless(tmp_path / "bad.sqlite", "trials")
    os.mkfifo(tmp_path / "pipe.sqlite")
    with serving(tmp_path) as served:
        for name, expected in (("bad", "damaged"), ("pipe", "cannot open"), ("sound", None)):
            status, _, body = ask(served.port, f"/s/{name}/api/study")
            record = json.loads(body)
            assert status == 200
            if expected is None:
                assert len(record["trials"]) == 3
            else:
                assert expected in record["strip"]["problem"]


def test_what_takes_long_to_refuse_is_not_asked_again_at_once(tmp_path, monkeypatch):
    path = write_study(tmp_path / "bad.sqlite", grown(3))
    make_endless(path, "trials")
    study, opened = WatchedStudy(path, "bad"), []
    monkeypatch.setattr(watching, "open_storage", lambda *a, **o: opened.append(a) or open_storage(*a, **o))
    problems = {study.look().problem for _ in range(5)}
    assert len(problems) == len(opened) == 1
    assert "damaged" in problems.pop()
    monkeypatch.setattr(watching, "SHARE", 0.0)
    study._rests_until = 0.0
    write_study(tmp_path / "good.sqlite", grown(3)).replace(path)
    assert study.look().problem == ""
