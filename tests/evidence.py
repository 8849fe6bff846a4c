"""What a learner hands over to guarantees, asked for by its type."""

from typing import Any

from assay.guarantees.evidence import Gathered


def evidence(model: Any, rows: Any, kind: type) -> Any:
    return Gathered(model.evidence(rows)).the(kind)
