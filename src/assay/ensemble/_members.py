"""Ensembles of trees, or of any other learners."""

from typing import Any, ClassVar

from assay.base import Learner


class OfMembers(Learner):
    """Mixin of ensembles whose members are trees, kept as nodes, or other learners, kept as they are."""

    of_trees: ClassVar[str]
    of_others: ClassVar[str]
    members_: list[Any]

    @property
    def family(self) -> str:  # type: ignore[override]
        """The checker's family: that of the trees, or one without claims."""
        return self.of_others if getattr(self, "members_", None) else self.of_trees

    def members(self) -> list[Any]:
        return self.members_

    def _take_members(self, members: Any) -> None:
        self.members_ = list(members)
