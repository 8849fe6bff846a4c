"""python -m assay.patch [--report] script.py ...: run a scikit-learn script, unchanged, with Assay's classes."""

import argparse
import runpy
import sys
from pathlib import Path

from assay.patch import patch_sklearn, report


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m assay.patch", description="Run a scikit-learn script with Assay's classes."
    )
    parser.add_argument("--names", help="patch these names alone, separated by commas")
    parser.add_argument("--report", action="store_true", help="at the end, say what was used and what fell back")
    parser.add_argument("-m", dest="module", action="store_true", help="the script is the name of a module")
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script is given")
    given = parser.parse_args()
    sys.argv = [given.script, *given.arguments]
    patch_sklearn(given.names.split(",") if given.names else None)
    try:
        if given.module:
            sys.path.insert(0, "")
            runpy.run_module(given.script, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, str(Path(given.script).resolve().parent))
            runpy.run_path(given.script, run_name="__main__")
    finally:
        if given.report:
            print(report(), file=sys.stderr)


if __name__ == "__main__":
    main()
