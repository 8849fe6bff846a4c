"""The studio as a process: what others on the machine see of it, whom it lets wait, and what it leaves behind."""

import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import urlopen

import pytest

pytest.importorskip("uvicorn", reason="the studio's extra is not installed")
from assay.studio.security import Tries
from assay.web import network_of

POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and file modes of POSIX")
SECONDS = 60.0


class Running(NamedTuple):
    process: Any
    address: str
    temporary: Path

    @property
    def place(self) -> tuple[str, int]:
        host, port = re.findall(r"http://([^:]+):(\d+)", self.address)[0]
        return host, int(port)


def started(folder: Path, *options: str, code: str = "", **more: str) -> Running:
    """Start a studio; `code` is run before it. It hears SIGHUP, whether or not the tests are to outlive a terminal."""
    temporary = folder / "tmp"
    temporary.mkdir()
    hears = "import signal; signal.signal(signal.SIGHUP, signal.SIG_DFL)" if hasattr(signal, "SIGHUP") else ""
    program = f"{hears}\n{code}\nimport sys; sys.argv[0] = 'assay'\nfrom assay.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program, "studio", *options],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary), "XDG_DATA_HOME": str(folder / "data")} | more,
    )
    found = re.search(r"http\S+", process.stdout.readline())
    assert found
    return Running(process, found[0], temporary)


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A studio whose patience is short."""
    code = "from assay import web as c; c.HEAD_SECONDS = c.BODY_SECONDS = c.LINGER_SECONDS = 0.5"
    one = started(tmp_path_factory.mktemp("hasty"), "--no-browser", code=code)
    yield one
    one.process.terminate()
    one.process.wait(SECONDS)


def until(told: Any) -> Any:
    end = time.monotonic() + SECONDS
    while not (found := told()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


@POSIX
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, *(pytest.param(one, marks=pytest.mark.long) for one in (signal.SIGHUP, signal.SIGINT))]
)
def test_the_browsers_command_line_has_no_token_and_nothing_is_left_behind(tmp_path: Path, number: int) -> None:
    browser, told = tmp_path / "browser", tmp_path / "told"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {told}.new && mv {told}.new {told}\n')
    browser.chmod(0o700)
    one = started(tmp_path, "iris", BROWSER=f"{browser} %s")
    until(told.exists)
    token = one.address.partition("token=")[2]
    opened = told.read_text()
    assert token not in opened
    page = Path(opened.removeprefix("file://"))
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert stat.S_IMODE(page.parent.stat().st_mode) == 0o700
    assert f"url={one.address}" in page.read_text()
    with urlopen(one.address, timeout=SECONDS) as answer:  # the server has begun, and its workspace is there
        assert answer.status == 200
    assert len(list(one.temporary.iterdir())) > 1
    one.process.send_signal(number)
    one.process.wait(SECONDS)
    assert one.process.returncode == (130 if number == signal.SIGINT else -number)
    assert not list(one.temporary.iterdir())


@POSIX
def test_a_studio_that_is_to_outlive_its_terminal_does(tmp_path: Path) -> None:
    one = started(tmp_path, "--no-browser", code="import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)")
    with urlopen(one.address, timeout=SECONDS):
        one.process.send_signal(signal.SIGHUP)
    with socket.create_connection(one.place, timeout=SECONDS) as line:
        line.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert line.recv(12) == b"HTTP/1.1 421"
    one.process.terminate()
    one.process.wait(SECONDS)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["missing.csv", ".", "x\x1b[2J.csv"])
def test_a_table_that_is_not_there_is_said_in_one_line(tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-m", "assay", "studio", name, "--no-browser"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, env=environment)
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.fullmatch(r"assay: [^\n\x1b]*(no file|is a folder)[^\n\x1b]*\n", done.stderr)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nhost: x\r\n",
        b"POST /login HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\nabc",
        b"GET / HTTP/1.1\r\nhost: x\r\n\r\nG",
        b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
    ids=["nothing", "half a line", "half a head", "half a body", "the next one's first letter", "rests"],
)
def test_whoever_does_not_go_on_is_cut_off(hasty: Running, sent: bytes) -> None:
    with socket.create_connection(hasty.place, timeout=SECONDS) as line:
        line.sendall(sent)
        answer = b"begun"
        try:
            while answer:
                answer = line.recv(4096)
        except ConnectionResetError:
            pass


def test_a_body_that_nobody_wants_does_not_hold_the_door(hasty: Running) -> None:
    """It was refused, and yet goes on, a byte at a time."""
    with socket.create_connection(hasty.place, timeout=SECONDS) as line:
        line.sendall(b"POST /tables HTTP/1.1\r\nhost: x\r\ncontent-length: 999999\r\n\r\n")
        assert line.recv(12) == b"HTTP/1.1 421"
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            until(lambda: line.sendall(b"x"))


def test_an_upload_that_stands_still_is_cut_off_and_one_that_goes_on_is_not(hasty: Running) -> None:
    with urlopen(hasty.address, timeout=SECONDS) as answer:
        cookie = answer.headers["set-cookie"].partition(";")[0]
    host, port = hasty.place
    head = f"POST /tables HTTP/1.1\r\nhost: {host}:{port}\r\norigin: http://{host}:{port}\r\ncookie: {cookie}\r\n"
    part = b'--x\r\ncontent-disposition: form-data; name="note"\r\n\r\n' + bytes(2**18) + b"\r\n--x--\r\n"
    head += f"content-type: multipart/form-data; boundary=x\r\ncontent-length: {len(part)}\r\n\r\n"
    with socket.create_connection(hasty.place, timeout=SECONDS) as line:
        line.sendall(head.encode() + b"--x\r\n")
        assert line.recv(1) == b""
    with socket.create_connection(hasty.place, timeout=SECONDS) as line:
        half = len(part) // 2
        line.sendall(head.encode() + part[:half])  # what was sent gives eight more seconds
        time.sleep(1.0)
        line.sendall(part[half:])
        assert line.recv(9) == b"HTTP/1.1 "


def test_what_came_before_gives_no_upload_more_than_some_seconds_to_stand_still(tmp_path: Path) -> None:
    code = "from assay import web as c; c.BODY_SECONDS = c.STILL_SECONDS = c.LINGER_SECONDS = 0.5"
    one = started(tmp_path, "--no-browser", code=code)
    try:
        with urlopen(one.address, timeout=SECONDS) as answer:
            cookie = answer.headers["set-cookie"].partition(";")[0]
        host, port = one.place
        head = f"POST /tables HTTP/1.1\r\nhost: {host}:{port}\r\norigin: http://{host}:{port}\r\ncookie: {cookie}\r\n"
        head += "content-type: multipart/form-data; boundary=x\r\ncontent-length: 90000000\r\n\r\n"
        with socket.create_connection(one.place, timeout=SECONDS) as line:
            line.sendall(
                head.encode()
                + b'--x\r\ncontent-disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
                + bytes(2**22)
            )
            assert line.recv(1) == b""  # four megabytes would be worth four minutes
    finally:
        one.process.terminate()
        one.process.wait(SECONDS)


@POSIX
def test_a_thousand_idle_connections_shut_nobody_out(tmp_path: Path) -> None:
    """The studio may open 400 files; each connection is one."""
    code = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (400, 400))"
    one = started(tmp_path, "--no-browser", code=code)
    with ExitStack() as held:
        for _ in range(1000):
            line = held.enter_context(socket.socket())
            line.settimeout(SECONDS)
            line.connect(one.place)
        with urlopen(one.address, timeout=SECONDS) as answer:
            assert answer.status == 200
        assert len(os.listdir(f"/proc/{one.process.pid}/fd")) < 300 if Path("/proc").is_dir() else True
    one.process.terminate()
    one.process.wait(SECONDS)


def test_a_new_connection_takes_the_place_of_the_one_that_waited_longest(tmp_path: Path) -> None:
    code = "from assay import web as c; c.MOST_OF_ONE = 3"
    one = started(tmp_path, "--no-browser", code=code)
    with urlopen(one.address, timeout=SECONDS):
        pass
    lines = [socket.create_connection(one.place, timeout=SECONDS) for _ in range(4)]
    try:
        assert lines[0].recv(1) == b""
        for line in lines[1:]:
            line.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            assert line.recv(12) == b"HTTP/1.1 421"
    finally:
        for line in lines:
            line.close()
        one.process.terminate()
        one.process.wait(SECONDS)


def test_wrong_passwords_close_the_door_for_their_own_network_alone() -> None:
    now = [0.0]
    tries = Tries(lambda: now[0])
    for count, pause in [(1, 0), (2, 0), (3, 0), (4, 0), (5, 60), (6, 120), (7, 240), (8, 480), (30, 3600)]:
        while tries._known.get("10.0.0.5", (0, 0))[0] < count:
            tries.wrong("10.0.0.5")
        assert tries.wait("10.0.0.5") == pause
        assert tries.wait("10.0.0.6") == 0
    now[0] += 3599
    assert tries.wait("10.0.0.5") == 1
    now[0] += 1
    assert tries.wait("10.0.0.5") == 0
    tries.right("10.0.0.5")
    tries.wrong("10.0.0.5")
    assert tries.wait("10.0.0.5") == 0
    for k in range(20_000):
        tries.wrong(str(k))
    assert len(tries._known) == 10_000


def test_networks() -> None:
    assert network_of(("::ffff:10.0.0.5", 1)) == "10.0.0.5"
    assert network_of(("2001:db8:1:2::1", 1)) == network_of(("2001:db8:1:2:ffff::", 1)) != network_of(("2001:db8::", 1))
    assert network_of(None) == network_of(("testclient", 1)) == ""
