"""What runs outside the server: reading tables, fitting, checking and predicting, in a process with limits.

The process reads requests as JSON lines and answers with JSON lines: {"event": ...} while it works, then
{"result": ...} or {"refused": sentence}. What it will be asked for can be loaded before anybody asks. The line "stop"
sets an event that a running study looks at; when the server goes away its end of the pipe closes, and the process ends
too.
"""

import json
import math
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from typing import Any, TextIO

from assay.fork_server import LEARNERS, started_early
from assay.messages import Message, of_error, plain

Tell = Callable[[dict[str, Any]], None]
STOP = threading.Event()


def main() -> None:
    """Serve requests until there are no more."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # whatever a library prints is no answer
    limits = json.loads(sys.argv[1])
    _limit(limits["bytes"])
    requests: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    ready = limits.get("ready", ())
    with started_early(*LEARNERS) if "learning" in ready else nullcontext():
        for name in ready:
            import_module(f"assay.studio.tasks.{name}")
        _serve(requests, out)


def _serve(requests: "queue.Queue[dict[str, Any]]", out: TextIO) -> None:
    while True:
        request = requests.get()
        STOP.clear()

        def say(record: dict[str, Any]) -> None:
            out.write(json.dumps(plain(record), allow_nan=False, default=str) + "\n")

        try:
            say({"result": _task(request["task"])(say, **request["arguments"])})
        except Exception as error:
            say({"refused": _sentence(error)})


def _listen(requests: "queue.Queue[dict[str, Any]]") -> None:
    for line in sys.stdin:
        if line.strip() == "stop":
            STOP.set()
        else:
            requests.put(json.loads(line))
    os._exit(0)


def _limit(most: int) -> None:
    """Hold the process to some memory, and behind the server in the queue for the processor."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.nice(5)
    except (ImportError, OSError, ValueError):
        return  # a system without these limits


def most_bytes() -> float:
    """Return the memory that this process may have."""
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_DATA)[0]
        return math.inf if most == resource.RLIM_INFINITY else most
    except (ImportError, OSError):
        return math.inf


def _task(name: str) -> Callable[..., Any]:
    from assay.studio import tasks

    return {
        "look": tasks.look,
        "learn": tasks.learn,
        "verify": tasks.verify,
        "compare": tasks.compare,
        "predict": tasks.predict,
        "plan": tasks.plan,
        "steps": tasks.steps,
        "methods": tasks.methods,
    }[name]


def _sentence(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return Message("memory.table")
    if isinstance(error, (ValueError, OSError, ImportError)):
        text = of_error(error)
        return text if isinstance(text, Message) else " ".join(text.split())[:1000]
    traceback.print_exception(error)
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


if __name__ == "__main__":
    from assay.studio import child

    child.main()  # not this file's second life as __main__, whose STOP nobody else sees
