"""What a run did."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from airflow_provider_ubunye.core.state import ROWS, Written


@dataclass
class Outcome:
    """What a run did, for people and machines.

    :ivar files: output name to the number of files landed.
    :ivar skipped: outputs left alone by mode ``ignore``.
    :ivar replaced: files of earlier runs removed.
    :ivar over: the dead run that this one took over from.
    :ivar stopped: the run was asked to stop after it had committed.
    """

    run: str
    files: dict[str, int] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    replaced: int = 0
    over: str | None = None
    stopped: bool = False

    def counted(self, written: Written) -> Written:
        """The output with its rows beside its claims, where its writer says how many."""
        rows = self.rows.get(written.name)
        return written if rows is None else replace(written, detail={**written.detail, ROWS: rows})
