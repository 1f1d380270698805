"""Listing an output folder: only overwrite modes and ``errorifexists`` ever do (contract, invariant 4)."""

from __future__ import annotations

import posixpath
from collections import defaultdict

from airflow_provider_ubunye.core.disk import Disk, Item
from airflow_provider_ubunye.core.places import STAGING_PREFIX, hidden, run_in, staging_name
from airflow_provider_ubunye.core.state import Claim

_SUMMARIES = frozenset({"_metadata", "_common_metadata"})


def data_files(disk: Disk, path: str, under: str = "") -> list[tuple[str, Item]]:
    """The data files below ``path/under``, as readers see them: names relative to ``path``, sorted."""
    found: list[tuple[str, Item]] = []
    pending = [under]
    while pending:
        inside = pending.pop()
        for item in disk.list_folder(posixpath.join(path, inside).rstrip("/")) or []:
            name = posixpath.join(inside, item.name)
            if hidden(item.name, item.folder):
                continue
            if item.folder:
                pending.append(name)
            else:
                found.append((name, item))
    return sorted(found, key=lambda pair: pair[0])


def markers(disk: Disk, path: str) -> set[str]:
    """The staging folders in an output: each stands for a run that is landing there, or died doing so."""
    return {name for name in disk.names(path) if name.startswith(STAGING_PREFIX)}


def replaceable(disk: Disk, path: str, run: str, under: list[str]) -> tuple[list[Claim], list[str]]:
    """The files that an overwrite by ``run`` replaces below each of ``under``, and what it leaves, in words.

    A run of another batch that is landing here at this moment must stay whole. Its marker stands in the
    output from before its first file until after its commit. So: list the files, then the markers, then the
    files again. A run seen only in part at first either still has its marker, or shows more files the second
    time; such a run came later than this overwrite, and all its files stay.
    """
    first = _by_run(disk, path, under)
    standing = markers(disk, path) - {staging_name(run)}
    second = _by_run(disk, path, under)
    files: list[Claim] = []
    warnings: list[str] = []
    for other, claims in sorted(first.items(), key=lambda pair: pair[0] or ""):
        if other == run:
            continue
        if other is None:
            files += claims & second[None]
        elif staging_name(other) in standing or claims != second[other]:
            warnings.append(
                f"{len(claims)} file(s) of run {other[:8]} in {path} stay: that run is writing there, or died "
                f"doing so and left {staging_name(other)}"
            )
        else:
            files += claims
    for name in sorted(_SUMMARIES):
        item = disk.look(posixpath.join(path, name))
        # A summary lists files that are about to go; readers that trust it would fail.
        if item is not None and not item.folder and "" in under:
            files.append(Claim(name, name, (item.size, item.changed)))
    return sorted(files, key=lambda c: c.final), warnings


def _by_run(disk: Disk, path: str, under: list[str]) -> dict[str | None, set[Claim]]:
    found: dict[str | None, set[Claim]] = defaultdict(set)
    for inside in under:
        for name, item in data_files(disk, path, inside):
            found[run_in(name)].add(Claim(name, name, (item.size, item.changed)))
    return found
