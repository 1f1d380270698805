"""Where state and records are, from arguments and environment: the same answer for shell, Python and Airflow."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.core.places import Places
from airflow_provider_ubunye.core.setting import Setting
from airflow_provider_ubunye.core.store import BatchStore, FileStore, MemoryStore, open_store
from airflow_provider_ubunye.core.timespan import span

if TYPE_CHECKING:
    from airflow_provider_ubunye.core.batch import Batch
    from airflow_provider_ubunye.core.records import FileRecords

STATE = "UBUNYE_STATE"
LEASE = "UBUNYE_RUN_LEASE"
TAKEOVER_AFTER = "UBUNYE_TAKEOVER_AFTER"
STATE_FOLDER = ".ubunye"


def state_uri(
    usecase_dir: str | os.PathLike[str] | None,
    state: str | os.PathLike[str] | None,
    environ: Mapping[str, str] = os.environ,
) -> str:
    """The state store: the one given, else ``UBUNYE_STATE``, else ``<usecase_dir>/.ubunye``.

    :raises UsageError: none of them is given.
    """
    if state is not None:
        return os.fspath(state)
    if environ.get(STATE):
        return environ[STATE]
    if usecase_dir is not None:
        return os.path.join(os.path.abspath(usecase_dir), STATE_FOLDER)
    raise UsageError(
        "nothing says where the state of batches is kept",
        hint=f"give -d or --state (usecase_dir= or state= in Python), or set {STATE}",
    )


def shell_of(
    usecase_dir: str | os.PathLike[str] | None,
    state: str | os.PathLike[str] | None,
    environ: Mapping[str, str] = os.environ,
) -> str:
    """The options that name the same state store in any shell; parameters as :func:`state_uri`."""
    state = environ.get(STATE) if state is None else state
    if state:
        return f"--state {shlex.quote(os.fspath(state))}"
    return "" if usecase_dir is None else f"-d {shlex.quote(os.fspath(usecase_dir))}"


def other_state(usecase_dir: str | os.PathLike[str], setting: Setting, batch: Batch) -> str | None:
    """A warning where the use case folder keeps a log or note of the batch too, beside the store that is used.

    :returns: the sentence; None where there is none, or where that store is the one that is used.
    """
    here = os.path.join(os.path.abspath(usecase_dir), STATE_FOLDER)
    log = os.path.join(here, "leases", *batch.task.split("/"), batch.key)
    if not setting.protected or os.path.realpath(here) == os.path.realpath(setting.store.where):
        return None
    if not os.path.isdir(log) and not os.path.exists(f"{log}.finished.json"):
        return None
    return (
        f"the state used is {setting.store.where}, but {here} knows this batch too: what its runs did is not "
        "looked at"
    )


def setting_for(
    usecase_dir: str | os.PathLike[str] | None,
    state: str | os.PathLike[str] | None = None,
    *,
    lineage: bool = False,
    lineage_dir: str | os.PathLike[str] | None = None,
    looking: bool = False,
    mask: Callable[[str], str] = str,
    environ: Mapping[str, str] = os.environ,
) -> Setting:
    """Open the store and say where everything is.

    :param lineage: keep a run record. Without it, a dead run's record is still closed where one is found.
    :param lineage_dir: their folder; a relative one lies in the use case folder. Default ``.ubunye/lineage``
        in the use case folder.
    :param looking: only look: the store is not tested, nothing is made in it, and nothing may be run.
    :param mask: what hides secrets in the texts of run records.
    :raises UsageError: nothing names a store. :raises StoreUnusable: it can't be used; nothing may run then.
    """
    recording = lineage or lineage_dir is not None
    records = _records(usecase_dir, recording, lineage_dir, mask)
    if _lease_is_off(environ):
        import logging

        logging.getLogger("airflow_provider_ubunye").warning(
            "%s is off: this run has no lease, is not refused and is not taken back.", LEASE
        )
        places = Places(usecase_dir)
        return Setting(
            MemoryStore(), places, records=records, recording=recording, heartbeat=False, protected=False
        )
    store = open_store(state_uri(usecase_dir, state, environ), testing=not looking)
    places = Places(usecase_dir, _home(usecase_dir, store))
    staging = os.path.join(store.root, "staging") if isinstance(store, FileStore) else None
    shell = shell_of(usecase_dir, state, environ)
    return Setting(store, places, staging_root=staging, records=records, recording=recording, shell=shell)


def _home(usecase_dir: str | os.PathLike[str] | None, store: BatchStore) -> str | None:
    """What tells a use case folder from others that share its state: its number on its disk.

    The same through every mount of that disk. Where the state lies in the folder itself nobody else shares it,
    and both may move together.
    """
    if usecase_dir is None or not os.path.isdir(usecase_dir):
        return None
    inside = os.path.realpath(usecase_dir) + os.sep
    if isinstance(store, FileStore) and (os.path.realpath(store.root) + os.sep).startswith(inside):
        return None
    return str(os.stat(usecase_dir).st_ino)


def need_lease(asked: str, environ: Mapping[str, str] = os.environ) -> None:
    """Refuse what needs to know about earlier runs while the lease is off: it would add the batch's rows again.

    :param asked: what was asked for, as it was typed: ``--rerun``.
    :raises UsageError: the lease is off.
    """
    if _lease_is_off(environ):
        raise UsageError(
            f"{LEASE} is off, so nothing says what earlier runs wrote, and {asked} can't be carried out",
            hint=f"turn the lease on, or leave {asked} out: the run then adds its rows to what is there",
        )


def _lease_is_off(environ: Mapping[str, str]) -> bool:
    text = environ.get(LEASE, "").strip().lower()
    if text in ("off", "0", "false", "no"):
        return True
    if text in ("", "on", "1", "true", "yes"):
        return False
    raise UsageError(f"{LEASE} is {text[:40]!r}; it is on, or off")


def _records(
    usecase_dir: str | os.PathLike[str] | None,
    recording: bool,
    lineage_dir: str | os.PathLike[str] | None,
    mask: Callable[[str], str],
) -> FileRecords | None:
    if usecase_dir is None and (lineage_dir is None or not os.path.isabs(lineage_dir)):
        if not recording:
            return None
        raise UsageError("run records need a use case folder or an absolute folder of their own")
    base = os.path.abspath(usecase_dir) if usecase_dir is not None else ""
    root = os.path.join(base, lineage_dir or os.path.join(STATE_FOLDER, "lineage"))
    if not recording and not os.path.isdir(root):
        return None
    from airflow_provider_ubunye.core.records import FileRecords

    return FileRecords(root, mask)


def takeover_after(seconds: float | None, default: float, environ: Mapping[str, str] = os.environ) -> float:
    """The time to takeover in seconds: the one given, else ``UBUNYE_TAKEOVER_AFTER``, else the default.

    :raises UsageError: it is no time span, or not positive.
    """
    if seconds is None and environ.get(TAKEOVER_AFTER):
        seconds = span(TAKEOVER_AFTER, environ[TAKEOVER_AFTER])
    value = default if seconds is None else seconds
    if not 0 < value < float("inf"):
        raise UsageError(f"the time to takeover must be a positive number of seconds, not {value!r}")
    return value
