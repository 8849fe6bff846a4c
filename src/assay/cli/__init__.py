"""The command line: `assay learn | verify | predict | methods | warmup`."""

import os
import sys


def main() -> None:
    """Run the command that the user typed, and leave at once: taking down what it has loaded would take half a second
    in which nothing happens."""
    from assay.cli.app import app

    try:
        app(prog_name="assay")
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        _leave(end.code or 0)


def _leave(code: int) -> None:
    """End the process once all that was written is out; where that fails, in the usual way, which says so."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(code)
    os._exit(code)
