"""What an older Ubunye's leases and notes say of outputs: JSON in, checked values out.

Its data files carry a UUID of their own, so a name counts only where a note or lease lists it, in the shape
that such files have (:mod:`.takeback` looks), inside an output of the batch.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from typing import Any

from airflow_provider_ubunye.core.errors import StateUnreadable, UsageError
from airflow_provider_ubunye.core.places import Places, folders_of
from airflow_provider_ubunye.core.specs import APPEND, OVERWRITE
from airflow_provider_ubunye.core.state import Claim, Place, Written


class OlderReader:
    """Reads outputs back, naming the note or lease in every refusal.

    :param known: the outputs of the run that reads, by name; empty while they are not known.
    :param label: the batch, for messages.
    :param where: the store, for messages.
    """

    def __init__(self, places: Places, known: Mapping[str, Place], label: str, where: str) -> None:
        self._places = places
        self._known = known
        self._label = label
        self._where = where

    def outputs(self, listed: object, key: str) -> list[Written]:
        """Outputs as a lease or note lists them: one for each folder that it names files in.

        :param key: the lease's or note's key.
        :raises StateUnreadable: it is not what an older Ubunye writes.
        """
        found: list[Written] = []
        for name, value in sorted(self.mapping(listed, key).items()):
            entry = self.mapping(value, key)
            paths, staging = entry.get("claimed", []), entry.get("staging")
            if not isinstance(paths, list):
                raise self.damaged(f"claims {type(paths).__name__} for {name[:80]!r}", key)
            # A note of 0.8 does not say the mode: what claims nothing is taken for an overwrite.
            adds = entry.get("appends", bool(paths))
            mode = entry["mode"] if isinstance(entry.get("mode"), str) else APPEND if adds else OVERWRITE
            by_place: dict[Place, list[str]] = {}
            for path in paths:
                place, inside = self._split(path, key)
                by_place.setdefault(place, []).append(inside)
            detail: dict[Place, dict[str, Any]] = {}
            if staging is not None:
                place, inside = self._split(staging, key)
                by_place.setdefault(place, [])
                detail[place] = {"staging": inside}
            # Where nothing is claimed nothing is ever done: any place will do.
            for place, files in (by_place or {self._known.get(name, Place("usecase", name)): []}).items():
                claims = tuple(Claim(f, f) for f in files)
                folders = tuple(folders_of(files))
                found.append(
                    Written(name, "files", mode, place, 0, claims, folders, detail.get(place, {})),
                )
        return found

    def _split(self, path: object, key: str) -> tuple[Place, str]:
        """A path that an older Ubunye wrote, as output and name inside: partition folders belong to the name.

        It is relative to the use case folder, absolute only where it can't be. One that lies in no output known
        is split by its look.
        """
        base = self._places.usecase_dir or ""
        full = ""
        if isinstance(path, str) and path and "\0" not in path:
            full = posixpath.normpath(posixpath.join(base.replace(os.sep, "/"), path.replace(os.sep, "/")))
        if not isinstance(path, str) or not os.path.isabs(full):
            raise self.damaged(f"lists {str(path)[:200]!r}, which is no path from the use case folder", key)
        known = {self._places.path(place): place for place in self._known.values()}
        for output in sorted(known, key=len, reverse=True):
            if full.startswith(output + "/"):
                return known[output], full[len(output) + 1 :]
        folder, inside = posixpath.split(full)
        while "=" in posixpath.basename(folder):
            folder, part = posixpath.split(folder)
            inside = f"{part}/{inside}"
        try:
            return self._places.place(folder), inside
        except UsageError as error:
            raise self.damaged(f"lists {path[:200]!r}: {error.what}", key) from None

    def mapping(self, value: object, key: str) -> Mapping[str, Any]:
        """The value, which must be a mapping. :raises StateUnreadable: it is not."""
        if not isinstance(value, dict):
            raise self.damaged(f"holds {type(value).__name__} where a mapping belongs", key)
        return value

    def damaged(self, what: str, key: str) -> StateUnreadable:
        """The refusal of a lease or note that can't be read."""
        kind = "note" if key.endswith(".finished.json") else "lease"
        return StateUnreadable(
            f"{self._label}: the {kind} of an older run {what}",
            where=f"{self._where}/{key}",
            hint="something changed it; look at it before you remove it",
        )
