"""Landing 12,000 staged files, against the bare renames with the same syncs."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

from airflow_provider_ubunye.core.disk import LocalDisk
from airflow_provider_ubunye.core.landing import FilesLanding
from airflow_provider_ubunye.core.localdisk import sync_file_system, sync_folder
from airflow_provider_ubunye.core.places import Places
from airflow_provider_ubunye.core.specs import APPEND
from benchmarks.measure import Figure, interleaved, ratio, timed
from benchmarks.usecase import PART

LIMIT = 1.5


def measure(work: Path, rounds: int, files: int) -> list[Figure]:
    """A: ``FilesLanding.land``. B: one sync of the content, a rename each, one sync of the folder."""
    claiming: list[float] = []

    def land(number: int) -> float:
        run = uuid.uuid4().hex
        landing = FilesLanding(
            LocalDisk(), Places(), run, "orders", APPEND, str(work / "out"), str(work / "state" / "staging")
        )
        staging = landing.open()
        for index in range(files):
            (staging.folder / staging.part_name(index, ".parquet")).write_bytes(PART)
        spent = timed(landing.claim)
        if number:
            claiming.append(spent)
        return _and_clear(work, timed(lambda: landing.land(lambda: None)))

    def bare(_: int) -> float:
        run = uuid.uuid4().hex
        staged, out = work / "staged", work / "out"
        staged.mkdir()
        out.mkdir()
        names = [f"part-{index:05d}-{run}.parquet" for index in range(files)]
        for name in names:
            (staged / name).write_bytes(PART)
        return _and_clear(work, timed(lambda: _rename_all(str(staged), str(out), names)))

    a, b = interleaved(rounds, land, bare)
    with_claim = [x + y for x, y in zip(a, claiming, strict=True)]
    what = f"landing {files:,} staged files"
    return [
        ratio(what, a, b, LIMIT, "FilesLanding.land", "bare renames, same syncs"),
        ratio(f"{what}, with naming and checking them before", with_claim, b, None, "claim and land", "bare"),
    ]


def _rename_all(staged: str, out: str, names: list[str]) -> None:
    sync_file_system(staged)
    for name in names:
        os.rename(f"{staged}/{name}", f"{out}/{name}")
    sync_folder(out)


def _and_clear(work: Path, spent: float) -> float:
    """Remove everything and let the disk come to rest, so that no round pays for the one before."""
    for item in work.iterdir():
        shutil.rmtree(item)
    sync_file_system(str(work))
    return spent
