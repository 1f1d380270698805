"""Landing files: staged where no reader looks, claimed in one entry, each moved into place by one rename.

The order of one output (contract, invariants 2, 3 and 7)::

    open     the output is announced; its marker folder _ubunye-<12 hex> stands in the output from here until
             after done, so that an overwrite beside this run leaves its files alone
    stage    the engine writes below the state folder, or below the marker where a rename from there would
             not be one step or would change group or ACL
    claim    every staged file gets its final name, every file to be replaced is listed: one entry
    land     staged content synced, each file renamed, folders synced

The fence is the order in which :mod:`.takeback` removes: the staged name first, then the landed one.
"""

from __future__ import annotations

import errno
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

from airflow_provider_ubunye.core.disk import Disk
from airflow_provider_ubunye.core.errors import LandingFailed, LeaseLost, OutputExists
from airflow_provider_ubunye.core.listing import data_files, replaceable
from airflow_provider_ubunye.core.places import (
    STAGING_PREFIX,
    Places,
    folders_of,
    landed_name,
    run_in,
    staging_name,
)
from airflow_provider_ubunye.core.specs import ERROR_IF_EXISTS, IGNORE, OVERWRITE, OVERWRITE_PARTITIONS
from airflow_provider_ubunye.core.state import REPLACED, Claim, Debt, Written

T = TypeVar("T")

_RETRIES = 100
PROBE = ".probe"
"""Ends the name of the folder that shows whether a rename out of the state folder is one step."""

_NOT_DATA = frozenset({"_SUCCESS", "_metadata", "_common_metadata"})
_PROOFS = 3


@dataclass(frozen=True)
class Staging:
    """What a writer gets: a folder to write into, and names to give.

    :param folder: an empty local folder; the writer makes ``column=value/`` folders and part files in it.
    :param run: the run's id, which every name carries.
    :param tag: tells apart the outputs of one run that share a folder; empty for the first.
    """

    folder: Path
    run: str
    tag: str = ""

    def part_name(self, index: int, suffix: str) -> str:
        """The name of a part file: ``part-00000-<run id>.parquet``.

        :param suffix: with its dot: ``".parquet"``, ``".json.gz"``.
        """
        return f"part-{index:05d}-{self.run}{self.tag}{suffix}"


class FilesLanding:
    """Lands one output's files.

    :param run: the run's id, 32 hex digits.
    :param path: the output folder.
    :param staging_root: the state folder's ``staging``, None when the state is not on a disk.
    :param pinned: the batch's variables: an ``overwrite_partitions`` whose partition column has the name of
        one may only touch that variable's partition.
    """

    kind = "files"
    takes_back = True

    def __init__(
        self,
        disk: Disk,
        places: Places,
        run: str,
        name: str,
        mode: str,
        path: str,
        staging_root: str | None,
        pinned: Mapping[str, str] | None = None,
    ) -> None:
        self._disk = disk
        self._run = run
        self._mode = mode
        self._root = staging_root
        self._pinned = pinned or {}
        place = places.place(path)
        self.path = places.path(place)
        self.marker = posixpath.join(self.path, staging_name(run))
        self.staging: Staging | None = None
        self.tag = ""
        """Set before :meth:`open` where another output of the run shares the folder."""
        self.warnings: list[str] = []
        self.written = Written(name, self.kind, mode, place, made=self._missing())

    def skips(self) -> bool:
        """Whether mode ``ignore`` finds data and leaves the output alone.

        :raises OutputExists: mode ``errorifexists`` finds data.
        """
        if self._mode not in (IGNORE, ERROR_IF_EXISTS) or not data_files(self._disk, self.path):
            return False
        if self._mode == IGNORE:
            return True
        raise OutputExists(
            f"the output {self.written.name} has mode errorifexists and {self.path} holds data already"
        )

    def open(self) -> Staging:
        """Put the marker into the output and open the staging folder. The output was announced before.

        :raises LandingFailed: the output folder can't be made or written.
        """
        try:
            # Now, under the lease: what a dead run had made may have gone with it since this was announced.
            self.written = replace(self.written, made=self._missing())
            self._warn_of_strangers()
            inside = self._mark()
            folder = posixpath.join(inside, self.written.name)
            self._disk.make_folders(folder)
        except OSError as error:
            raise self._failed("the output folder can't be written", error) from error
        self.staging = Staging(Path(folder), self._run, self.tag)
        return self.staging

    def claim(self) -> tuple[Written, list[Debt]]:
        """Name every staged file and everything it replaces. Lands nothing.

        :raises LandingFailed: something staged is not a whole data file, or its name is taken.
        """
        assert self.staging is not None
        try:
            claims = [Claim(landed_name(name, self._run, self.tag), name) for name in self._staged()]
            self._check(claims)
            folders = self._new_folders(claims)
            self.written = replace(self.written, claims=tuple(claims), folders=tuple(folders))
            return self.written, self._replaced(claims)
        except OSError as error:
            raise self._failed("the staged files can't be claimed", error) from error

    def land(self, check: Callable[[], None]) -> None:
        """Move every claimed file into place and make it durable.

        :param check: raises when the run must not go on.
        :raises LeaseLost: a staged file is gone: a takeover removed it.
        :raises LandingFailed: the disk refused, or the output was wiped meanwhile.
        """
        assert self.staging is not None
        staged_root = self.staging.folder.as_posix()
        claims = self.written.claims
        try:
            self._disk.sync_files([f"{staged_root}/{claim.staged}" for claim in claims])
            for claim in claims:
                check()
                self._move(f"{staged_root}/{claim.staged}", f"{self.path}/{claim.final}")
            self._disk.sync_folders(self._landed_folders())
            self._check_alone()
        except OSError as error:
            raise self._failed("a staged file can't be moved into place", error) from error

    def _mark(self) -> str:
        """Stand the marker in the output; return the folder to stage in.

        The marker is made below the state folder and moved into the output: that shows that a rename from
        there is one step. An empty folder, unlike an empty file, is seen by no reader.
        """
        if self._root is not None:
            inside = posixpath.join(self._root, staging_name(self._run))
            probe = inside + PROBE
            try:
                if self._remake(lambda: self._inherits(inside)):
                    self._remake(lambda: self._move_marker(probe))
                    return inside
            except OSError as error:
                self._disk.remove_folder(probe)
                if error.errno not in (errno.EXDEV, errno.EPERM, errno.EACCES, errno.EROFS, errno.ENOTEMPTY):
                    raise
        self._remake(lambda: self._disk.make_folders(self.marker))
        return self.marker

    def _inherits(self, inside: str) -> bool:
        self._disk.make_folders(inside)
        return self._disk.same_inheritance(inside, self.path)

    def _move_marker(self, probe: str) -> None:
        self._disk.make_folders(probe)
        self._disk.rename(probe, self.marker)

    def _remake(self, act: Callable[[], T]) -> T:
        for _ in range(_RETRIES):
            self._disk.make_folders(self.path)
            try:
                return act()
            except FileNotFoundError:
                # Another run that failed took the output folder it had made away again, just now; or one that
                # took over swept this run's staging, which the next step to be recorded finds out.
                continue
        raise FileNotFoundError(errno.ENOENT, "the output folder is removed again and again", self.path)

    def _warn_of_strangers(self) -> None:
        for name in sorted(self._disk.names(self.path)):
            if name == "_temporary" or (name.startswith(STAGING_PREFIX) and name != staging_name(self._run)):
                self.warnings.append(
                    f"{self.path}/{name} is another writer's staging: live, or left by one that died; "
                    "it is neither landed nor removed"
                )

    def _staged(self) -> list[str]:
        assert self.staging is not None
        names: list[str] = []
        pending = [""]
        while pending:
            inside = pending.pop()
            for item in self._disk.list_folder(posixpath.join(self.staging.folder.as_posix(), inside)) or []:
                name = posixpath.join(inside, item.name)
                if item.link:
                    raise LandingFailed(f"the staged {name} is a link, not a data file")
                if item.folder:
                    pending.append(name)
                elif item.name not in _NOT_DATA and not item.name.endswith(".crc"):
                    names.append(name)
        return sorted(names)

    def _check(self, claims: list[Claim]) -> None:
        assert self.staging is not None
        self._refuse_stray_partitions(claims)
        finals = {claim.final for claim in claims}
        if len(finals) != len(claims):
            raise LandingFailed(f"two staged files of {self.written.name} would land under one name")
        for claim in claims:
            path = f"{self.staging.folder.as_posix()}/{claim.staged}"
            if claim.staged.endswith(".parquet") and not _has_footer(*self._disk.read_ends(path, 12)):
                raise LandingFailed(
                    f"the staged Parquet file {claim.staged} has no footer: it was not written to its end"
                )
        real = {
            folder: self._disk.real(posixpath.join(self.path, folder))
            for folder in {posixpath.dirname(c.final) for c in claims}
        }
        for folder, at in real.items():
            if at != posixpath.join(self.path, folder).rstrip("/"):
                raise LandingFailed(f"the partition folder {self.path}/{folder} is a link to {at}")
        for claim in claims:
            if self._disk.look(f"{self.path}/{claim.final}") is not None:
                raise LandingFailed(f"{self.path}/{claim.final} exists already; nothing was claimed")

    def _refuse_stray_partitions(self, claims: list[Claim]) -> None:
        """A stray row of another day would replace that whole day; a file in no partition, every partition."""
        if self._mode != OVERWRITE_PARTITIONS:
            return
        for claim in claims:
            if "=" not in posixpath.basename(posixpath.dirname(claim.final)):
                raise LandingFailed(
                    f"{self.written.name} has mode overwrite_partitions and the staged {claim.staged} lies in no "
                    "partition folder: it would replace what is not its own",
                    hint="give the output partition_by: the columns whose partitions are replaced",
                )
        for folder in folders_of(claim.final for claim in claims):
            column, equals, value = posixpath.basename(folder).partition("=")
            column, value = unquote(column), unquote(value)
            if equals and self._pinned.get(column, value) != value:
                raise LandingFailed(
                    f"{self.written.name} has rows with {column}={value!r}, but the batch is {column}="
                    f"{self._pinned[column]!r}: they would replace another batch's partition",
                    hint=f"drop those rows, or name the batch by another variable than {column}",
                )

    def _new_folders(self, claims: list[Claim]) -> list[str]:
        """The partition folders that landing makes, outermost first."""
        wanted = folders_of(claim.final for claim in claims)
        return [f for f in wanted if self._disk.look(f"{self.path}/{f}") is None]

    def _replaced(self, claims: list[Claim]) -> list[Debt]:
        if self._mode == OVERWRITE:
            under = [""]
        elif self._mode == OVERWRITE_PARTITIONS:
            under = sorted({posixpath.dirname(c.final) for c in claims})
        else:
            return []
        files, warnings = replaceable(self._disk, self.path, self._run, under)
        self.warnings += warnings
        if not files:
            return []
        output = replace(self.written, claims=tuple(files), folders=(), made=0)
        proof = tuple(c.final for c in claims[:_PROOFS])
        return [Debt(REPLACED, None, output, by=self._run, proof=proof)]

    def _move(self, source: str, target: str) -> None:
        for _ in range(_RETRIES):
            try:
                self._disk.rename(source, target)
            except FileNotFoundError:
                if self._disk.look(source) is None:
                    raise LeaseLost(
                        f"run {self._run[:8]} lost its lease: its staged {posixpath.basename(source)} is gone"
                    ) from None
                # The folder is not made yet, or a run that took itself back removed it while it was empty.
                self._disk.make_folders(posixpath.dirname(target))
                continue
            return
        raise FileNotFoundError(errno.ENOENT, "its folder is removed again and again", target)

    def _landed_folders(self) -> list[str]:
        folders = {posixpath.dirname(f"{self.path}/{c.final}") for c in self.written.claims}
        folders |= {posixpath.dirname(f"{self.path}/{f}") for f in self.written.folders}
        at = self.path
        for _ in range(self.written.made):
            at = posixpath.dirname(at)
            folders.add(at)
        return sorted(folders)

    def _check_alone(self) -> None:
        if self._disk.look(self.marker) is None:
            raise LandingFailed(
                f"something else removed or replaced {self.path} while files landed there",
                hint="find what writes there beside this task, then run the batch again",
            )
        if self._mode in (ERROR_IF_EXISTS, IGNORE):
            for name, _ in data_files(self._disk, self.path):
                if run_in(name) != self._run:
                    raise LandingFailed(
                        f"the output {self.written.name} has mode {self._mode} and {self.path}/{name} appeared"
                        " while this run wrote"
                    )

    def _missing(self) -> int:
        """How many trailing folders of the output's path are not there yet."""
        count, at = 0, self.path
        while self._disk.look(at) is None:
            count, at = count + 1, posixpath.dirname(at)
        return count

    def _failed(self, what: str, error: OSError) -> LandingFailed:
        reason = error.strerror or str(error)
        return LandingFailed(f"{self.written.name}: {what}: {reason}", where=self.path)


def _has_footer(first: bytes, last: bytes) -> bool:
    """Whether a Parquet file's first and last 12 bytes are as Parquet has them: magic, …, length, magic."""
    return first[:4] == b"PAR1" == last[8:]
