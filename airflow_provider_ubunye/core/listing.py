"""Listing an output folder: only overwrite modes and ``errorifexists`` ever do (contract, invariant 4)."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from dataclasses import dataclass, field

from airflow_provider_ubunye.core.disk import Disk, Item
from airflow_provider_ubunye.core.messages import count
from airflow_provider_ubunye.core.places import STAGING_PREFIX, hidden, run_in, staging_name
from airflow_provider_ubunye.core.state import Claim

_SUMMARIES = frozenset({"_metadata", "_common_metadata"})

_NOT_LAKES = (frozenset({"store.json"}), frozenset({"config.yaml", "transformations.py"}))
"""A folder with these names in it holds state, or a task; whatever lies below it is nobody's data."""


@dataclass
class Seen:
    """What one walk through an output saw.

    :ivar files: the data files as readers see them: names relative to the output.
    :ivar markers: the staging folders met on the way: each stands for a run that is landing, or died doing so.
    :ivar strange: folders that hold state or a task, not data.
    """

    files: list[tuple[str, Item]] = field(default_factory=list)
    markers: set[str] = field(default_factory=set)
    strange: list[str] = field(default_factory=list)


def walk(disk: Disk, path: str, under: str = "") -> Seen:
    """Look at everything below ``path/under``."""
    seen = Seen()
    pending = [under]
    while pending:
        inside = pending.pop()
        items = disk.list_folder(posixpath.join(path, inside).rstrip("/")) or []
        names = {item.name for item in items}
        if any(marks <= names for marks in _NOT_LAKES):
            seen.strange.append(inside)
            continue
        for item in items:
            name = posixpath.join(inside, item.name)
            if item.name.startswith(STAGING_PREFIX):
                seen.markers.add(item.name)
            if hidden(item.name, item.folder):
                continue
            if item.folder:
                pending.append(name)
            else:
                seen.files.append((name, item))
    seen.files.sort(key=lambda pair: pair[0])
    return seen


def data_files(disk: Disk, path: str, under: str = "") -> list[tuple[str, Item]]:
    """The data files below ``path/under``, as readers see them: names relative to ``path``, sorted."""
    return walk(disk, path, under).files


def replaceable(disk: Disk, path: str, run: str, under: list[str]) -> tuple[list[Claim], list[str]]:
    """The files that an overwrite by ``run`` replaces below each of ``under``, and what it leaves, in words.

    A run of another batch that is landing here at this moment must stay whole. Its marker stands in its output
    from before its first file until after its commit; that output may be this folder, one in it, or one that
    this folder is in. So: list the files, look for markers above, then list files and markers again. A run
    seen only in part at first either still has its marker, or shows more files the second time; such a run
    came later than this overwrite, and all its files stay.
    """
    first, strange, _ = _by_run(disk, path, under)
    standing = _markers_above(disk, path, under, first)
    second, _, met = _by_run(disk, path, under)
    standing |= met
    files: list[Claim] = []
    warnings = [
        f"{posixpath.join(path, at).rstrip('/')} holds no data but state or a task; it stays"
        for at in strange
    ]
    for other, claims in sorted(first.items(), key=lambda pair: pair[0] or ""):
        if other == run:
            continue
        if other is None:
            files += claims & second[None]
        elif staging_name(other) in standing or claims != second[other]:
            verb = "stays" if len(claims) == 1 else "stay"
            warnings.append(
                f"{count(len(claims), 'file')} of run {other[:8]} in {path} {verb}: that run is writing there, or "
                f"died doing so and left {staging_name(other)}"
            )
        else:
            files += claims
    for name in sorted(_SUMMARIES):
        item = disk.look(posixpath.join(path, name))
        # A summary lists files that are about to go; readers that trust it would fail.
        if item is not None and not item.folder and "" in under:
            files.append(Claim(name, name, (item.size, item.changed)))
    return sorted(files, key=lambda c: c.final), warnings


def _markers_above(disk: Disk, path: str, under: list[str], found: dict[str | None, set[Claim]]) -> set[str]:
    """The markers of the runs found, in this folder and in every folder it lies in.

    Asked by name: a folder above may hold more than anyone wants to list.
    """
    above = {posixpath.join(path, inside).rstrip("/") for inside in under} | {path}
    at = path
    while at != posixpath.dirname(at):
        at = posixpath.dirname(at)
        above.add(at)
    names = {staging_name(run) for run in found if run is not None}
    return {name for name in names for at in above if disk.look(posixpath.join(at, name)) is not None}


def _by_run(
    disk: Disk, path: str, under: list[str]
) -> tuple[dict[str | None, set[Claim]], list[str], set[str]]:
    found: dict[str | None, set[Claim]] = defaultdict(set)
    strange: list[str] = []
    markers: set[str] = set()
    for inside in under:
        seen = walk(disk, path, inside)
        strange += seen.strange
        markers |= seen.markers
        for name, item in seen.files:
            found[run_in(name)].add(Claim(name, name, (item.size, item.changed)))
    return found, strange, markers
