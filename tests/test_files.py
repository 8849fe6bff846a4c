"""Files are whole or not there, whatever happens to the process that writes them."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from assay.files import written_whole

WRITE = """
import sys
from assay.files import written_whole
with written_whole(sys.argv[1]) as part:
    part.write_bytes(b"half")
    print("half", flush=True)
    sys.stdin.read()
    part.write_bytes(b"whole")
"""


def write(path, text):
    with written_whole(path) as part:
        part.write_text(text)


def writer(path):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout.readline() == b"half\n"
    return process


def test_a_killed_process_leaves_the_old_file_and_the_next_save_tidies_up(tmp_path):
    path = tmp_path / "m.assay"
    write(path, "old")
    process = writer(path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2
    write(path, "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.assay"]
    assert path.read_text() == "new"


def test_a_save_leaves_alone_what_a_living_process_is_writing(tmp_path):
    path = tmp_path / "m.assay"
    process = writer(path)
    write(path, "mine")
    assert len(list(tmp_path.iterdir())) == 2
    process.communicate()
    assert path.read_text() == "whole"
    assert len(list(tmp_path.iterdir())) == 1


def test_files_of_other_names_stay(tmp_path):
    others = [".m.assay.mine.part", ".m.assay.part", "m.assay.0123456789abcdef.part", ".n.0123456789abcdef.part"]
    for name in others:
        (tmp_path / name).write_text("not yours")
    write(tmp_path / "m.assay", "x")
    assert {entry.name for entry in tmp_path.iterdir()} == {*others, "m.assay"}


def test_many_writers_of_one_name_leave_one_whole_file(tmp_path):
    path = tmp_path / "m.assay"
    texts = [str(i) * 100_000 for i in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: [write(path, text) for _ in range(20)], texts))
    assert path.read_text() in texts
    assert [entry.name for entry in tmp_path.iterdir()] == ["m.assay"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    write(tmp_path / "t", "old")
    with pytest.raises(UnicodeEncodeError):
        write(tmp_path / "t", "half \udc80")
    assert (tmp_path / "t").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_the_umask_decides_who_may_read_and_is_never_changed(mask, mode, tmp_path, monkeypatch):
    """Other threads make files meanwhile: at no moment may theirs be open to everybody."""
    set_mask, asked = os.umask, []
    before = set_mask(mask)
    monkeypatch.setattr(os, "umask", asked.append)
    try:
        write(tmp_path / "t", "x")
    finally:
        set_mask(before)
    assert (tmp_path / "t").stat().st_mode & 0o777 == mode
    assert asked == []
