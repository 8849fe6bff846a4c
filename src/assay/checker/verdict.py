"""What the checker says, as plain data: a verdict for each claim and a report of them all."""

from dataclasses import dataclass
from typing import NamedTuple

WORDS = {
    "PROVED": "holds",
    "PROVED-GIVEN": "holds under its assumptions",
    "REJECTED": "fails",
    "REFUSED": "cannot be checked",
}


class Verdict(NamedTuple):
    """What became of one claim: its name, the status, the reason in words, the number the checker found."""

    claim: str
    status: str
    reason: str
    measured: float | None = None

    @property
    def holds(self) -> bool:
        return self.status in ("PROVED", "PROVED-GIVEN")

    def __str__(self) -> str:
        return f"{self.claim}: {WORDS[self.status]}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True)
class Report:
    """Verdicts on a certificate; `structure` is the one on what the claims stand on: record, ledger, model,
    data; `about` tells which rows of a table the claims are about."""

    structure: Verdict
    verdicts: tuple[Verdict, ...] = ()
    about: str = ""

    @property
    def holds(self) -> bool:
        """True if every claim is proved, or proved under its assumptions, and there is one."""
        return bool(self.verdicts) and all(verdict.holds for verdict in (self.structure, *self.verdicts))

    @property
    def reason(self) -> str:
        """Why the certificate does not hold; empty if it does."""
        failed = [str(verdict) for verdict in (self.structure, *self.verdicts) if not verdict.holds]
        return "; ".join(failed) if failed or self.verdicts else "the certificate makes no claim"

    def __str__(self) -> str:
        from assay.checker.printed import report_text

        return report_text(self)

    def _repr_html_(self) -> str:
        from assay.checker.printed import report_html

        return report_html(self)
