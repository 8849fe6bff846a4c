"""Compiled loops without a cache: they run, and it is said once; a cache that others can write to is not loaded."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import assay
from assay import loop_cache

LOOPS = """
from assay.jit import compiled

@compiled
def twice(x):
    return 2 * x

@compiled(reduction=True)
def thrice(x):
    return 3 * x
"""
RUN = "import loops; print(loops.twice(4), loops.thrice(5), sum(loops.twice.stats.cache_hits.values()))"
NO_PLACE = "from assay import loop_cache; loop_cache._LoopFiles._locator_classes = []; "


@pytest.fixture
def run(tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)

    def call(code, mode=0o700):
        folder = tmp_path / "kept"
        folder.mkdir(exist_ok=True)
        paths = os.pathsep.join([str(tmp_path), *sys.path])
        places = {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(folder)}
        for place in (folder, *folder.rglob("*")):
            if place.is_dir():
                place.chmod(mode)
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | places, check=True
        )
        return done.stdout.split(), done.stderr

    return call


def test_without_a_place_for_the_cache_loops_are_compiled_and_it_is_said_once(run):
    printed, said = run(NO_PLACE + RUN)
    assert printed == ["8", "15", "0"]
    assert said.count("compiled loops are not cached") == 1
    assert "Traceback" not in said


def test_a_cache_is_used_when_only_its_owner_can_write_to_it(run):
    assert run(RUN) == (["8", "15", "0"], "")
    assert run(RUN) == (["8", "15", "1"], "")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
def test_a_cache_that_others_can_write_to_is_not_loaded(run):
    run(RUN)
    printed, said = run(RUN, mode=0o777)
    assert printed == ["8", "15", "0"]
    assert said.count("can be written to by others") == 1
    assert run(RUN)[0] == ["8", "15", "1"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_the_cache_of_another_user_is_not_loaded(run, tmp_path):
    run(RUN)
    for place in (tmp_path / "kept").rglob("*"):
        os.chown(place, 12345, 12345)
    printed, said = run(RUN)
    assert printed == ["8", "15", "0"]
    assert "can be written to by others" in said


def test_a_loop_is_made_of_the_files_that_its_own_imports_from(tmp_path, monkeypatch):
    monkeypatch.setattr(loop_cache, "_PACKAGE", tmp_path)
    (tmp_path / "room").mkdir()
    texts = {
        "inner": "from assay.jit import compiled\nfrom assay.room.plain import ONE\n@compiled\ndef one(): return ONE\n",
        "outer": "from assay.room.inner import one\n@compiled\ndef two(): return 2 * one()\n",
        "plain": "from assay.room.far import TWO\nONE = 1\n",
        "far": "TWO = 2\n",
    }
    files = {name: tmp_path / "room" / f"{name}.py" for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    digests = {}
    for changed in (None, "far", "plain", "inner", "outer"):
        if changed:
            files[changed].write_text(texts[changed] + "# another line\n")
        loop_cache._digest.cache_clear()
        loop_cache._imported.cache_clear()
        digests[changed] = loop_cache._digest(files["outer"])
    assert len({*digests.values()}) == 5


def test_a_copy_of_the_same_sources_in_another_place_compiles_nothing(run, tmp_path):
    run(RUN)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "loops.py").rename(tmp_path / "elsewhere" / "loops.py")
    os.utime(tmp_path / "elsewhere" / "loops.py", (1, 1))
    assert run(f"import sys; sys.path.insert(0, {str(tmp_path / 'elsewhere')!r}); {RUN}")[0] == ["8", "15", "1"]


def test_a_changed_source_is_compiled_anew_and_old_ones_are_dropped(run, tmp_path):
    assert loop_cache._KEPT_VERSIONS >= 4
    for k in range(4):
        (tmp_path / "loops.py").write_text(LOOPS.replace("2 * x", f"{k + 2} * x"))
        few = "from assay import loop_cache; loop_cache._KEPT_VERSIONS = 2; import loops; print(loops.twice(4))"
        assert run(few)[0] == [str(4 * (k + 2))]
    assert len([*(tmp_path / "kept" / "loops").glob("loops-*")]) == 2


SLOW = """
import sys, time
from numba.core import compiler
real = compiler.CompilerBase.compile_extra
def slow(self, body):
    print("compiles", flush=True)
    time.sleep(2)
    return real(self, body)
compiler.CompilerBase.compile_extra = slow
import loops
print(loops.twice(4))
"""


@pytest.mark.skipif(os.name != "posix", reason="locks of POSIX")
def test_of_two_processes_one_compiles_a_loop_and_the_other_reads_it(tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS)
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    (tmp_path / "kept").mkdir(mode=0o700)
    env = os.environ | {"PYTHONPATH": paths, "NUMBA_CACHE_DIR": str(tmp_path / "kept")}
    both = [subprocess.Popen([sys.executable, "-c", SLOW], env=env, stdout=subprocess.PIPE, text=True) for _ in "ab"]
    said = [process.communicate(timeout=300)[0].split() for process in both]
    assert [words[-1] for words in said] == ["8", "8"], said
    assert sum(words.count("compiles") for words in said) == 1


def test_a_loop_that_cannot_be_compiled_keeps_nobody_waiting(run):
    fails = "import loops\ntry:\n    loops.twice('a', 1)\nexcept TypeError as error:\n    print('refused')\n"
    wrong = "from numba.core.errors import TypingError\nimport loops, assay.loop_cache as c\n"
    wrong += "try:\n    loops.twice({1: object()})\nexcept TypingError:\n    pass\n"
    wrong += "import subprocess, sys\n"
    waits = "import assay.loop_cache as c; c._LONGEST_WAIT = 1e9; import loops; print(loops.twice(4))"
    wrong += f"subprocess.run([sys.executable, '-c', {waits!r}], check=True, timeout=300)\n"
    assert run(fails)[0] == ["refused"]
    assert run(wrong)[0] == ["8"]


SERIAL = {"_shares"}
"""Loops that add up and write, of which each step needs the sum so far, so that none are taken together."""


def test_loops_that_add_up_write_nothing():
    """A loop whose sums may be reordered and that writes is compiled twice, and which of the two runs, and so the bits
    of its sums, depends on how near to each other its arrays lie."""
    found = set()
    for path in Path(assay.__file__).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for function in ast.walk(ast.parse(text)) if "reduction=True" in text else ():
            named = isinstance(function, ast.FunctionDef)
            if named and any("reduction=True" in ast.unparse(one) for one in function.decorator_list):
                loops = [one for one in ast.walk(function) if isinstance(one, ast.For)]
                found |= {function.name for loop in loops if _adds_up_and_writes(loop)}
    assert found == SERIAL


def _adds_up_and_writes(loop: ast.For) -> bool:
    nodes = [node for statement in loop.body for node in ast.walk(statement)]
    if any(isinstance(node, (ast.For, ast.While)) for node in nodes):
        return False
    plain = [target for node in nodes if isinstance(node, ast.Assign) for target in node.targets]
    own = {name.id for target in plain for name in ast.walk(target) if isinstance(name, ast.Name)}
    added = [node.target for node in nodes if isinstance(node, ast.AugAssign)]
    sums = [one for one in added if isinstance(one, ast.Name) and one.id not in own]
    return bool(sums) and any(isinstance(one, ast.Subscript) for one in (*plain, *added))
