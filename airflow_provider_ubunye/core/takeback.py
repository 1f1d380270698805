"""Settling debts: taking back what a run that did not get to done left, removing what one that did replaced.

**The fence is the order.** For each claim the staged name goes first, then the landed one: a rename by a
run that wakes late either came before, and its file goes with the second step, or finds its source gone.
Renaming the staging folder away would not do: a rename through an open folder handle still lands.

**Nothing is trusted that a log says of paths** (contract, invariant 4). A name is acted on only where it is
plain and relative, lies in the recorded output without a link on the way, and carries its run's id. Files
that an overwrite listed carry no id of ours: each goes only while its size and time are as listed, and only
from an output in which the run that replaced it has landed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from airflow_provider_ubunye.core.disk import Disk
from airflow_provider_ubunye.core.errors import NotTakenBack
from airflow_provider_ubunye.core.landing import PROBE
from airflow_provider_ubunye.core.messages import count
from airflow_provider_ubunye.core.places import Places, folders_of, is_plain, is_run_id, run_in, staging_name
from airflow_provider_ubunye.core.state import UNFINISHED, Claim, Debt

OLDER_RUN = "older"
"""The run of debts that an older Ubunye's note or lease gave; their names carry a uuid instead."""

_OLDER_PART = re.compile(r"part-\d{5}-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}[-.][^/]*\Z")
_OLDER_STAGING = re.compile(r"_ubunye-[0-9a-f]{12}\Z")
_TREE_TRIES = 5


@dataclass
class Settled:
    """What became of some debts.

    :ivar removed: files that were there and are gone now.
    :ivar counts: the same for each debt.
    :ivar missing: files that were not there any more.
    :ivar left: what could not be removed, and is still owed.
    :ivar problems: why, one sentence each.
    :ivar warnings: what a person should know, nothing owed.
    :ivar named: outputs that may hold a dead run's rows and can't be taken back.
    """

    removed: int = 0
    counts: list[tuple[Debt, int]] = field(default_factory=list)
    missing: int = 0
    left: list[Debt] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    named: list[Debt] = field(default_factory=list)


class TakeBack:
    """Settles debts on one disk.

    :param staging_root: the state folder's ``staging``, None when the state is not on a disk.
    :param check: raises when the run that settles must not go on.
    :param owns: whether a run id is of the batch whose debts these are.
    """

    def __init__(
        self,
        disk: Disk,
        places: Places,
        staging_root: str | None,
        check: Callable[[], None] = lambda: None,
        owns: Callable[[str], bool] = is_run_id,
    ) -> None:
        self._disk = disk
        self._owns = owns
        self._places = places
        self._root = staging_root
        self._check = check

    def settle(self, debts: tuple[Debt, ...] | list[Debt]) -> Settled:
        """Settle each debt, or say why not. A debt that is refused changes nothing."""
        settled = Settled()
        for debt in debts:
            before = settled.removed
            try:
                self._settle(debt, settled)
            except NotTakenBack as error:
                settled.left.append(debt)
                settled.problems.append(error.what)
            except OSError as error:
                settled.left.append(debt)
                settled.problems.append(
                    f"the output {debt.output.name} can't be looked at: {error.strerror or error}"
                )
            settled.counts.append((debt, settled.removed - before))
        return settled

    def refuse(self, debts: Iterable[Debt]) -> None:
        """Refuse what :meth:`settle` would refuse for its names, before anything depends on it.

        :raises NotTakenBack: a name may not be acted on. Nothing was removed.
        """
        for debt in debts:
            self._refuse_odd_names(debt, self._places.path(debt.output.place))

    def _settle(self, debt: Debt, settled: Settled) -> None:
        if debt.output.kind == "named":
            if debt.why == UNFINISHED and debt.output.detail.get("committing") is not None:
                settled.named.append(debt)
            return
        if debt.output.kind != "files":
            raise NotTakenBack(
                f"the output {debt.output.name} is of kind {debt.output.kind!r}, which this version "
                "can't take back",
                hint="use the version that wrote it",
            )
        path = self._places.path(debt.output.place)
        self._refuse_odd_names(debt, path)
        if debt.why == UNFINISHED:
            self._take_back(debt, path, settled)
        else:
            self._remove_replaced(debt, path, settled)

    def _take_back(self, debt: Debt, path: str, settled: Settled) -> None:
        left: list[Claim] = []
        stagings = self._stagings(debt, path)
        for claim in debt.output.claims:
            self._check()
            try:
                for staging in stagings:
                    # An older run's staging folder is the output's own; ours holds one for each output.
                    inside = claim.staged if debt.run == OLDER_RUN else f"{debt.output.name}/{claim.staged}"
                    self._disk.remove(f"{staging}/{inside}")
                self._count(self._disk.remove(f"{path}/{claim.final}"), settled)
            except OSError as error:
                left.append(claim)
                settled.problems.append(f"{path}/{claim.final} can't be removed: {error.strerror or error}")
        owed = [
            staging
            for staging in stagings
            if (debt.run != OLDER_RUN or self._is_older_staging(staging))
            and not self._remove_tree(staging, settled)
        ]
        if self._root is not None and debt.run is not None and is_run_id(debt.run):
            self._tidy(posixpath.join(self._root, staging_name(debt.run) + PROBE))
        self._remove_empty(path, debt.output.folders)
        if left or owed:
            settled.left.append(replace(debt, output=replace(debt.output, claims=tuple(left))))
            return
        at = path
        for _ in range(debt.output.made):
            if not self._tidy(at):
                break
            at = posixpath.dirname(at)

    def _remove_replaced(self, debt: Debt, path: str, settled: Settled) -> None:
        if debt.run is None and not any(self._disk.look(f"{path}/{name}") for name in debt.proof):
            many = len(debt.output.claims)
            verb = "stays" if many == 1 else "stay"
            settled.warnings.append(
                f"{count(many, 'replaced file')} of {path} {verb}: nothing there shows that run "
                f"{(debt.by or '?')[:8]} landed in it"
            )
            return
        left: list[Claim] = []
        for claim in debt.output.claims:
            self._check()
            target = f"{path}/{claim.final}"
            try:
                if claim.seen is not None:
                    item = self._disk.look(target)
                    if item is not None and (item.size, item.changed) != claim.seen:
                        settled.warnings.append(
                            f"{target} changed after it was listed for replacement; it stays"
                        )
                        continue
                self._count(self._disk.remove(target), settled)
            except OSError as error:
                left.append(claim)
                settled.problems.append(f"{target} can't be removed: {error.strerror or error}")
        self._remove_empty(path, sorted({posixpath.dirname(c.final) for c in debt.output.claims}))
        if left:
            settled.left.append(replace(debt, output=replace(debt.output, claims=tuple(left))))

    def _count(self, removed: bool, settled: Settled) -> None:
        settled.removed += removed
        settled.missing += not removed

    def _refuse_odd_names(self, debt: Debt, path: str) -> None:
        if debt.run is not None and debt.run != OLDER_RUN and not is_run_id(debt.run):
            raise NotTakenBack(f"the log names the run {debt.run[:40]!r}, which is no run id")
        if debt.run is not None and is_run_id(debt.run) and not self._owns(debt.run):
            raise NotTakenBack(f"the log names run {debt.run[:8]}, which is no run of this batch")
        if not is_plain(debt.output.name) or "/" in debt.output.name:
            raise NotTakenBack(f"the log names the output {debt.output.name[:80]!r}")
        for name in {*debt.output.folders, *(n for c in debt.output.claims for n in (c.final, c.staged))}:
            if not is_plain(name):
                raise NotTakenBack(f"the log claims {name[:120]!r}, which leaves the output {path}")
        for name in debt.proof:
            if not is_plain(name) or run_in(name) != debt.by:
                raise NotTakenBack(f"the log takes {name[:120]!r} for a file of the run that replaced others")
        staging = debt.output.detail.get("staging") if debt.run == OLDER_RUN else None
        if staging is not None and not _OLDER_STAGING.match(str(staging)):
            raise NotTakenBack(f"an older lease stages in {str(staging)[:120]!r}, which is no staging folder")
        for claim in debt.output.claims:
            if not self._carries(claim, debt):
                raise NotTakenBack(
                    f"the log claims {claim.final[:120]!r} in {path}, which does not carry its run's id"
                )
        self._refuse_links(debt, path)

    def _refuse_links(self, debt: Debt, path: str) -> None:
        inside = [*(c.final for c in debt.output.claims), *(f"{f}/" for f in debt.output.folders)]
        for folder in ["", *folders_of(inside)]:
            at = posixpath.join(path, folder).rstrip("/")
            if self._disk.real(at) != at:
                raise NotTakenBack(f"{at} is reached through a link; nothing was removed")
        for staging in self._stagings(debt, path):
            item = self._disk.look(staging)
            if item is not None and not item.folder:
                raise NotTakenBack(f"{staging} is not a folder; nothing was removed")

    def _carries(self, claim: Claim, debt: Debt) -> bool:
        name = claim.final
        if debt.run is None:
            return debt.why != UNFINISHED and claim.seen is not None
        if debt.run == OLDER_RUN:
            return _OLDER_PART.match(posixpath.basename(name)) is not None
        return run_in(name) == debt.run

    def _stagings(self, debt: Debt, path: str) -> list[str]:
        if debt.run == OLDER_RUN:
            staging = debt.output.detail.get("staging")
            return [] if staging is None else [posixpath.join(path, staging)]
        if debt.run is None:
            return []
        name = staging_name(debt.run)
        return [posixpath.join(root, name) for root in (self._root, path) if root is not None]

    def _is_older_staging(self, folder: str) -> bool:
        """Whether it holds files, and none of a run of ours: whatever a lease says, ours are another's."""
        names: list[str] = []
        pending = [folder]
        while pending:
            at = pending.pop()
            for item in self._disk.list_folder(at) or []:
                if item.folder:
                    pending.append(f"{at}/{item.name}")
                else:
                    names.append(item.name)
        return bool(names) and not any(run_in(name) for name in names)

    def _remove_empty(self, path: str, folders: Iterable[str]) -> None:
        for folder in reversed(folders_of(f"{folder}/" for folder in folders)):
            self._tidy(f"{path}/{folder}")

    def _tidy(self, folder: str) -> bool:
        """Remove a folder if it is empty. What can't be tidied is nobody's loss, and nothing owed."""
        try:
            return self._disk.remove_folder(folder)
        except OSError:
            return False

    def _remove_tree(self, root: str, settled: Settled) -> bool:
        """Remove a run's own staging folder.

        :returns: False where the disk refuses: still owed, for while a marker stands in an output, an
            overwrite takes its run for one that is landing, and leaves its files.
        """
        for _ in range(_TREE_TRIES):
            try:
                if self._clear(root):
                    return True
            except OSError as error:
                settled.problems.append(f"{root} can't be removed: {error.strerror or error}")
                return False
        settled.warnings.append(f"{root} stays: its run is still writing there; nothing of it can land")
        return True

    def _clear(self, folder: str) -> bool:
        items = self._disk.list_folder(folder)
        if items is None:
            return True
        for item in items:
            path = f"{folder}/{item.name}"
            if item.folder:
                self._clear(path)
            else:
                self._disk.remove(path)
        return self._disk.remove_folder(folder)
