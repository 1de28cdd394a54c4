"""The server only reads, only for whom it is meant, and shrugs at everything else."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys

import pytest

from nasbot.errors import OptionError
from nasbot.page.guard import Rules
from nasbot.page.server import serve
from tests.page.conftest import serving


def ask(port, target="/", method="GET", host=None, body=None, **headers):
    """Status, headers and body of one request, over a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", f"127.0.0.1:{port}" if host is None else host)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
    finally:
        connection.close()


STUDY = "/s/forty/"

SCRIPT = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "cors"}
IMAGE = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"}
UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket"}

# Each is a request and the statuses that refuse it. What may be read at all is in no answer to any of them.
HOSTILE = {
    "post": ({"method": "POST"}, 405),
    "put": ({"method": "PUT", "target": STUDY}, 405),
    "delete": ({"method": "DELETE", "target": STUDY + "api/trial/0"}, 405),
    "patch": ({"method": "PATCH"}, 405),
    "options": ({"method": "OPTIONS", "Origin": "http://evil.test"}, 405),
    "trace": ({"method": "TRACE"}, 405),
    "unknown method": ({"method": "BREW"}, 405),
    "post with a body": ({"method": "POST", "body": b"x" * 100, "Content_Length": "100"}, 405),
    "get with a body": ({"body": b"x" * 100, "Content_Length": "100"}, 413),
    "get with a huge body": ({"Content_Length": str(10**12)}, 413),
    "chunked": ({"Transfer_Encoding": "chunked", "body": b"0\r\n\r\n"}, 413),
    "foreign host": ({"host": "evil.test"}, 421),
    "foreign host with our port": ({"host": "evil.test:8765"}, 421),
    "rebound name": ({"host": "127.0.0.1.evil.test"}, 421),
    "host with user": ({"host": "127.0.0.1@evil.test"}, 421),
    "host that ends like ours": ({"host": "notlocalhost"}, 421),
    "empty host": ({"host": ""}, 421),
    "host with a strange port": ({"host": "127.0.0.1:80x"}, 421),
    "another address": ({"host": "10.0.0.1"}, 421),
    "foreign origin": ({"target": STUDY + "api/study", "Origin": "http://evil.test"}, 403),
    "null origin": ({"target": STUDY + "api/study", "Origin": "null"}, 403),
    "origin of another port": ({"target": STUDY + "api/study", "Origin": "http://127.0.0.1:1"}, 403),
    "cross-site script": ({"target": STUDY + "api/study", **SCRIPT}, 403),
    "cross-site image": ({"target": STUDY + "drawing/0.svg", **IMAGE}, 403),
    "cross-site frame": (
        {"target": STUDY, "Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"},
        403,
    ),
    "traversal": ({"target": "/static/../../../../etc/passwd"}, 404),
    "encoded traversal": ({"target": "/static/..%2f..%2f..%2fetc%2fpasswd"}, 404),
    "doubly encoded traversal": ({"target": "/static/%252e%252e/%252e%252e/etc/passwd"}, 404),
    "traversal in a study's name": ({"target": "/s/..%2f..%2fetc/api/study"}, 404),
    "absolute path": ({"target": "//etc/passwd"}, 404),
    "backslashes": ({"target": "/static/..\\..\\etc\\passwd"}, 404),
    "NUL": ({"target": "/static/page.css%00.html"}, 404),
    "the study's file": ({"target": "/s/forty.sqlite"}, 404),
    "python's own files": ({"target": "/static/../page.py"}, 404),
    "negative trial": ({"target": STUDY + "api/trial/-1"}, 404),
    "trial beyond the last": ({"target": STUDY + "api/trial/99999999999999999999"}, 404),
    "trial that is no number": ({"target": STUDY + "api/trial/0;rm"}, 404),
    "unknown series": ({"target": STUDY + "api/series/__class__"}, 404),
    "unknown figure": ({"target": STUDY + "api/figure/--help"}, 404),
    "near nothing": ({"target": STUDY + "api/near/4000"}, 404),
    "oversized address": ({"target": "/" + "a" * 3000}, 414),
    "oversized query": ({"target": STUDY + "api/study?since=" + "1" * 3000}, 414),
    "many headers": ({f"X_{i}": "1" for i in range(80)}, 431),
    "proxied": ({"target": "http://evil.test/", "host": "evil.test"}, 421),
    "forwarded host": ({"host": "evil.test", "X_Forwarded_Host": "127.0.0.1"}, 421),
    "websocket": ({"target": STUDY + "api/events", "host": "evil.test", **UPGRADE}, 421),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_requests_get_nothing(server, name):
    request, expected = HOSTILE[name]
    status, headers, body = ask(server.port, **request)
    assert status == expected, (status, body[:200])
    assert b"root:" not in body
    assert b"sqlite" not in body
    assert "access-control-allow-origin" not in headers


def test_the_hostile_requests_are_refused_for_what_they_are(server):
    """Asked as it is meant to be, the same server answers."""
    for target in ("/", STUDY, STUDY + "api/study", STUDY + "api/trial/0", STUDY + "drawing/0.svg", "/static/page.css"):
        status, headers, _ = ask(server.port, target)
        assert status in (200, 303), target
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "access-control-allow-origin" not in headers
        assert "server" not in headers
        assert ask(server.port, target, method="HEAD")[2] == b""
    for host in ("localhost", f"localhost:{server.port}", "127.0.0.1:9", "[::1]:80", "LOCALHOST"):
        assert ask(server.port, STUDY, host=host)[0] == 200, host
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert ask(server.port, STUDY, **link)[0] == 200, "a link from elsewhere may be followed"
    mine = f"http://127.0.0.1:{server.port}"
    assert ask(server.port, STUDY + "api/tick", Origin=mine)[0] == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",  # no Host
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.test\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 40_000 + b"\r\n\r\n",
        b"GET /\r\n\r\n",
    ],
    ids=["noise", "no host", "two hosts", "huge header", "no version"],
)
def test_what_is_no_request_is_refused(server, sent):
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as connection:
        connection.sendall(sent)
        answer = connection.recv(200)
    assert re.match(rb"HTTP/1.1 4\d\d", answer) or answer == b"", answer
    assert ask(server.port, STUDY)[0] == 200


def test_a_slow_request_is_given_up_and_keeps_nobody_else_waiting(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        assert ask(server.port, STUDY)[0] == 200
        assert slow.recv(100) == b"", "the server closes it by itself"


def test_the_study_is_not_written(server, study_file):
    before = study_file.read_bytes()
    for target in ("api/study", "api/compare", "api/trials.csv", "drawing/3.svg"):
        assert ask(server.port, STUDY + target)[0] == 200
    assert study_file.read_bytes() == before


def test_what_it_holds_is_plain_data(server):
    study = json.loads(ask(server.port, STUDY + "api/study")[2])
    assert [trial["number"] for trial in study["trials"]] == list(range(40))
    again = ask(server.port, STUDY + f"api/study?since={study['revision']}&epoch={study['epoch']}")
    assert json.loads(again[2])["trials"] == []
    rows = ask(server.port, STUDY + "api/trials.csv")[2].decode().splitlines()
    assert len(rows) == 41


# -- other binds -------------------------------------------------------------------------------------------------------


def test_a_bind_beyond_this_machine_needs_a_token(study_file):
    with pytest.raises(OptionError, match="token"):
        serve(study_file, host="0.0.0.0", port=0)


def test_with_a_token_nobody_without_it_gets_anything(study_file):
    with serving(study_file, "--host", "0.0.0.0") as served:
        token = re.search(r"\?token=([\w-]{30,})", served.url)[1]
        for target in ("/", STUDY, STUDY + "api/study", "/static/page.css", "/?token=wrong", "/?token="):
            assert ask(served.port, target)[0] == 401, target
        name = f"nasbot-token-{served.port}"
        assert ask(served.port, STUDY, Cookie=f"{name}=wrong")[0] == 401
        assert ask(served.port, STUDY, Authorization="Bearer " + token[:-1])[0] == 401
        assert ask(served.port, f"/?token={token}", host="evil.test")[0] == 421
        status, headers, _ = ask(served.port, f"/?token={token}")
        assert (status, headers["location"]) == (303, "/")
        assert "HttpOnly" in headers["set-cookie"]
        assert "SameSite=Strict" in headers["set-cookie"]
        cookie = headers["set-cookie"].split(";")[0]
        assert cookie == f"{name}={token}", "another port of the same machine has a cookie of another name"
        assert ask(served.port, STUDY, Cookie=f"nasbot-token-1={token}")[0] == 401
        assert ask(served.port, STUDY + "api/study", Cookie=cookie)[0] == 200
        assert ask(served.port, STUDY, Authorization=f"Bearer {token}", host="192.168.7.7")[0] == 200
        elsewhere = ask(served.port, f"//evil.test/x?token={token}")[1]["location"]
        assert elsewhere == "/evil.test/x", "the way back leads nowhere else"


@pytest.mark.parametrize(
    ("host", "allowed", "refused"),
    [
        ("127.0.0.1", ["localhost", "127.0.0.1:1", "[::1]"], ["10.0.0.1", "box.local", "", "[::2]"]),
        ("0.0.0.0", ["10.0.0.1", "[fe80::1]:80", "localhost"], ["box.local", "evil.test", "[x]"]),
        ("10.0.0.1", ["10.0.0.1:8765", "localhost"], ["10.0.0.2", "evil.test"]),
        ("::", ["[::2]", "10.0.0.1"], ["evil.test", "[::1]x", "[::1]:x", "[::1"]),
    ],
)
def test_which_hosts_are_answered(host, allowed, refused):
    rules = Rules.of(host, token="t")
    assert [name for name in allowed if not rules.allows_host(name)] == []
    assert [name for name in refused if rules.allows_host(name)] == []
    assert Rules.of(host, token="t", allowed=["Box.local"]).allows_host("box.local:8765")


# -- beginning and ending ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_ends_when_it_is_told_although_pages_listen(study_file, ending):
    with serving(study_file) as served:
        with socket.create_connection(("127.0.0.1", served.port), timeout=120) as listening:
            listening.sendall(f"GET {STUDY}api/events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert b"200" in listening.recv(100)
            served.process.send_signal(ending)
            assert served.process.wait(120) in (0, -ending)
        assert served.process.stderr.read() == ""


def test_a_head_of_the_events_is_answered_at_once(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=120) as asking:
        head = f"HEAD {STUDY}api/events HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        asking.settimeout(20)
        asking.sendall(head.encode())
        answer = b"".join(iter(lambda: asking.recv(1000), b""))  # to its end, which an endless answer never has
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"text/event-stream" in answer
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["nowhere"], 3, "no such study"),
        (["{study}", "--port", "70000"], 2, "0 to 65535"),
        (["{study}", "--host", "256.0.0.1", "--token", "t"], 3, "cannot listen"),
        (["{study}", "--port", "{taken}"], 3, "--port names another"),
    ],
)
def test_mistakes_are_one_line(study_file, arguments, code, words):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        given = [a.format(study=study_file, taken=taken.getsockname()[1]) for a in arguments]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-m", "nasbot", "serve", *given],
            capture_output=True,
            text=True,
            env=environment,
            timeout=300,
        )
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
