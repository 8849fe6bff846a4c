"""The picture of the README: what `assay learn breast_cancer --trials 14` prints at the end, as a terminal shows it.

`python docs/site_picture.py` writes `docs/_static/leaderboard.svg`.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

COMMAND = ["learn", "breast_cancer", "--trials", "14"]
PICTURE = Path(__file__).parent / "_static" / "leaderboard.svg"


def main() -> None:
    """Run the command in a folder of its own and draw its last lines."""
    environment = os.environ | {"COLUMNS": "100", "ASSAY_LOOKS": "off", "NO_COLOR": "1"}
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "assay", *COMMAND],
            cwd=folder, env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
    lines = done.stdout.splitlines()
    start = max(at for at, line in enumerate(lines) if "Certified" in line)
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(Text(f"$ assay {' '.join(COMMAND)}\n...\n" + "\n".join(lines[start:]).rstrip()))
    drawn = console.export_svg(title="assay", unique_id="assay")
    PICTURE.write_text(
        re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL), encoding="utf-8"
    )  # no fonts from the web


if __name__ == "__main__":
    main()
