"""`assay methods` and `assay warmup`."""

from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table as Grid

from assay import registry
from assay.messages import method
from assay.text import json_text


def methods(as_json: bool) -> None:
    """Print every learner with its card."""
    cards = [_record(kind) for kind in registry.learners()]
    if as_json:
        print(json_text(cards))
        return
    grid = Grid(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column()
    for card in cards:
        first = f"[bold]{card['learner']}[/]"
        for part in ("task", "model", "strategy", "algorithm", "guarantee"):
            text = ", ".join(card[part]) if isinstance(card[part], list) else card[part]
            grid.add_row(first, part, text)
            first = ""
        grid.add_row()
    Console().print(grid, highlight=False)


def warmup(every_learner: bool) -> None:
    """Run small studies, and fit every learner to a few rows if that is asked for, with a bar."""
    from assay.warmup import steps, studies

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        work = studies() + (steps() if every_learner else [])
        bar = progress.add_task("Compiling", total=len(work))
        for name, run in work:
            progress.update(bar, description=f"Compiling {name}")
            run()
            progress.advance(bar)
    learners = f" and of {len(registry.learners())} learners" if every_learner else ""
    console.print(f"Compiled the loops of assay learn{learners}.")


def _record(kind: Any) -> dict[str, Any]:
    card = kind.card
    return {
        "learner": kind.__name__,
        "module": kind.__module__.rpartition("._")[0],
        "name": card.name,
        "zh": method(kind.__name__, card.name, "zh"),
        "task": card.task,
        "kinds": sorted(registry.kinds(kind)),
        "model": str(card.model),
        "strategy": card.strategy,
        "algorithm": card.algorithm,
        "guarantee": list(card.guarantee),
        "input": list(card.input),
    }
