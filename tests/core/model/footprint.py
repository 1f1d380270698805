"""What one act of a run reads and changes, so that acts which don't touch the same thing need no reordering."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_ubunye.core.testing import MemoryDisk, MemoryStore

Token = tuple[str, str]


@dataclass(frozen=True)
class Footprint:
    """:param adds: folders to or from which a name goes: two of them agree, one and a listing don't."""

    reads: frozenset[Token] = frozenset()
    writes: frozenset[Token] = frozenset()
    adds: frozenset[Token] = frozenset()

    def conflicts(self, other: Footprint) -> bool:
        """Whether the order of the two acts can matter."""
        return not (
            self.writes.isdisjoint(other.writes)
            and self.writes.isdisjoint(other.reads)
            and self.reads.isdisjoint(other.writes)
            and self.adds.isdisjoint(other.reads)
            and self.reads.isdisjoint(other.adds)
        )


def life(actor: str) -> Token:
    """Stands for whether a run's process is there."""
    return ("life", actor)


def of_store(store: MemoryStore, name: str, args: tuple[Any, ...], actor: str) -> Footprint:
    """The footprint of an act on the store as it is now."""
    key = args[0]
    me = life(actor)
    if name == "list":
        return Footprint(reads=frozenset({("keys", key)}), writes=frozenset({me}))
    there = key in store.data
    changes = name == "put" or (name == "create" and not there) or (name == "delete" and there)
    if not changes:
        return Footprint(reads=frozenset({("key", key)}), writes=frozenset({me}))
    return Footprint(writes=frozenset({("key", key), me}), adds=frozenset({("keys", log_of(key))}))


def log_of(key: str) -> str:
    """The prefix of the batch that a key belongs to."""
    return "/".join(key.split("/")[:5]).partition(".")[0]


def of_disk(disk: MemoryDisk, name: str, args: tuple[Any, ...], actor: str) -> Footprint:
    """The footprint of an act on the disk as it is now."""
    looked = args[0] if name.startswith("sync_") else [a for a in args if isinstance(a, str)]
    reads = {("path", path) for path in looked}
    if name in ("list_folder", "names", "remove_folder"):
        reads.add(("names", args[0]))
    if name in ("make_folder", "write"):
        reads.add(("path", posixpath.dirname(args[0])))
    if name == "rename":
        reads |= {("path", posixpath.dirname(args[1])), ("names", args[1])}
    changed = _changed(disk.nodes, name, args)
    return Footprint(
        reads=frozenset(reads),
        writes=frozenset({life(actor), *(("path", path) for path in changed)}),
        adds=frozenset(("names", posixpath.dirname(path)) for path in changed),
    )


def _changed(nodes: Mapping[str, object], name: str, args: tuple[Any, ...]) -> list[str]:
    """The paths that an act makes, removes or writes."""
    path = args[0]
    match name:
        case "write":
            return [path]
        case "make_folder":
            return [] if path in nodes else [path]
        case "rename":
            moved = [p for p in nodes if p == path or p.startswith(path + "/")]
            return moved + [args[1] + p[len(path) :] for p in moved]
        case "remove":
            return [path] if path in nodes else []
        case "remove_folder":
            empty = path in nodes and not any(p.startswith(path + "/") for p in nodes)
            return [path] if empty else []
    return []
