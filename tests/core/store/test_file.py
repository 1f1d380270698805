"""What is a folder's own: disks that refuse, fill up or forget, and state folders that can't be used."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.core.store import FileStore, StoreUnusable, open_store
from airflow_provider_ubunye.core.store import file as module
from airflow_provider_ubunye.core.store.base import unusable
from airflow_provider_ubunye.core.store.file import NETWORK_CACHING, file_system_of
from tests.core.kit import Shop

KEY = "leases/shop/daily/load_orders/08e84f1b8a561918/00000001.json"


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "state")


def failing(
    real: Callable[..., Any], code: int, times: int = 1, *, first: Callable[..., Any] | None = None
) -> Any:
    """``real``, which refuses the first times it is called, after doing ``first``."""
    left = [times]

    def act(*args: Any, **how: Any) -> Any:
        if left[0] > 0:
            left[0] -= 1
            if first is not None:
                first(*args)
            raise OSError(code, os.strerror(code), args[0])
        return real(*args, **how)

    return act


def temps(store: FileStore) -> list[Path]:
    return list(Path(store.root).rglob(".tmp-*"))


@pytest.mark.parametrize("act", ["fsync", "link"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_a_create_that_the_disk_refuses_leaves_nothing(
    store: FileStore, monkeypatch: pytest.MonkeyPatch, act: str, code: int
) -> None:
    store._make_folder(os.path.dirname(store._path(KEY)))
    monkeypatch.setattr(os, act, failing(getattr(os, act), code))
    with pytest.raises(OSError, match=re.escape(os.strerror(code))):
        store.create(KEY, b"x")
    assert temps(store) == []
    assert store.read(KEY) is None
    assert store.create(KEY, b"y")


@pytest.mark.parametrize("links", [True, False])
def test_a_create_whose_temp_file_was_swept_makes_another(
    store: FileStore, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    real = os.link
    swept: list[str] = []

    def sweep(source: str, target: str) -> None:
        if not swept:
            swept.append(source)
            store.delete([os.path.relpath(target, store.root)])
        if links:
            real(source, target)
        else:
            raise OSError(errno.ENOTSUP, "no links here")

    monkeypatch.setattr(os, "link", sweep)
    assert store.create(KEY, b"x")
    assert store.read(KEY) == b"x"
    assert swept
    assert temps(store) == []


def test_a_create_that_is_swept_for_ever_says_so(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", failing(os.link, errno.ENOENT, 10**6))
    with pytest.raises(FileNotFoundError):
        store.create(KEY, b"x")


def test_without_links_a_refused_rename_is_told_from_a_lost_one(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field case 9: a taken number is lost, whatever errno the mount gives; a free one is an error."""
    monkeypatch.setattr(os, "link", failing(os.link, errno.EPERM, 10**6))
    assert store.create(KEY, b"first")
    real = os.rename

    def strange(source: str, target: str) -> None:
        if target.endswith(".json"):
            raise OSError(errno.EACCES, "strange mount", source)
        real(source, target)

    monkeypatch.setattr(os, "rename", strange)
    assert not store.create(KEY, b"second")
    with pytest.raises(PermissionError):
        store.create(KEY.replace("1.json", "2.json"), b"third")
    assert store.read(KEY) == b"first"
    assert temps(store) == []


def test_an_entry_made_as_a_folder_is_read_listed_beaten_and_removed(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", failing(os.link, errno.EPERM, 10**6))
    assert store.create(KEY, b"x")
    assert Path(store.root, KEY).is_dir()
    # A client that can link, on the same share, loses to it.
    monkeypatch.undo()
    assert not store.create(KEY, b"y")
    assert store.list(os.path.dirname(KEY)) == [KEY]
    os.utime(Path(store.root, KEY), (1, 1))
    assert store.beat(KEY)
    age = store.age(KEY)
    assert age is not None
    assert age < 60
    store.delete([KEY])
    assert store.list("leases") == []


def test_an_entry_made_as_a_folder_is_never_seen_empty(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that meets its removal finds it whole or gone; a kill in between leaves what is swept."""
    monkeypatch.setattr(os, "link", failing(os.link, errno.EPERM, 10**6))
    store.create(KEY, b"x")
    real = os.unlink
    seen = []

    def looked_at(path: str) -> None:
        if path.endswith("entry"):
            seen.append(store.read(KEY))
            raise KeyboardInterrupt
        real(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", looked_at)
        with pytest.raises(KeyboardInterrupt):
            store.delete([KEY])
    assert seen == [None]
    assert len(temps(store)) == 1
    store.delete([KEY])
    assert temps(store) == []


def test_a_folder_that_holds_no_entry_is_not_absent(store: FileStore) -> None:
    Path(store.root, KEY).mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        store.read(KEY)
    assert not store.create(KEY, b"x")
    store.delete([KEY])
    assert store.read(KEY) is None
    Path(store.root, KEY, "entry").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        store.read(KEY)


def test_a_create_whose_folder_was_not_synced_syncs_it_when_it_is_tried_again(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name is there after the first try: a power cut would take it away, after the run's success."""
    synced: list[str] = []
    refuse = failing(synced.append, errno.EIO)
    store.create(KEY, b"x")
    monkeypatch.setattr(module, "sync_folder", refuse)
    key = KEY.replace("1.json", "2.json")
    with pytest.raises(OSError, match="Input/output"):
        store.create(key, b"mine")
    assert store.read(key) == b"mine"
    assert not store.create(key, b"mine")
    assert synced == [os.path.dirname(store._path(key))]
    assert not store.create(key, b"another's")
    assert len(synced) == 1


def test_a_put_that_the_disk_refuses_keeps_the_old_content(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(KEY, b"old")
    monkeypatch.setattr(os, "replace", failing(os.replace, errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        store.put(KEY, b"new")
    assert store.read(KEY) == b"old"
    assert temps(store) == []


def test_a_put_whose_temp_file_was_swept_makes_another(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "replace", failing(os.replace, errno.ENOENT, 1, first=lambda s, _: os.unlink(s)))
    store.put(KEY, b"new")
    assert store.read(KEY) == b"new"
    monkeypatch.setattr(os, "replace", failing(os.replace, errno.ENOENT, 10**6))
    with pytest.raises(FileNotFoundError):
        store.put(KEY, b"newer")


def test_an_age_whose_probe_was_swept_is_asked_again(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(KEY, b"x")
    monkeypatch.setattr(os, "utime", failing(os.utime, errno.ENOENT, 1, first=lambda p, _: os.unlink(p)))
    assert store.age(KEY) is not None
    monkeypatch.setattr(os, "utime", failing(os.utime, errno.ENOENT, 10**6))
    with pytest.raises(FileNotFoundError):
        store.age(KEY)
    assert temps(store) == []


def test_what_can_not_be_read_is_never_absent(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create(KEY, b"x")
    monkeypatch.setattr("builtins.open", failing(open, errno.EACCES, 10**6))
    with pytest.raises(PermissionError):
        store.read(KEY)
    monkeypatch.undo()
    monkeypatch.setattr(os, "scandir", failing(os.scandir, errno.EIO, 10**6))
    with pytest.raises(OSError, match="Input/output"):
        store.list("leases")
    monkeypatch.undo()
    monkeypatch.setattr(os, "stat", failing(os.stat, errno.EIO, 10**6))
    with pytest.raises(OSError, match="Input/output"):
        store.age(KEY)


def test_a_list_is_read_until_two_readings_agree(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder is not read in one instant: a name may go and its successor come behind the reader's back."""
    store.create(KEY, b"x")
    second = KEY.replace("1.json", "2.json")
    real = module._walk
    calls: list[int] = []

    def behind(base: str, inside: str = "") -> Any:
        found = list(real(base, inside))
        calls.append(len(found))
        if len(calls) == 1:
            store.create(second, b"y")
        return iter(found)

    monkeypatch.setattr(module, "_walk", behind)
    assert store.list(os.path.dirname(KEY)) == [KEY, second]
    assert len(calls) == 3


def test_a_removal_that_is_refused_is_an_error(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create(KEY, b"x")
    monkeypatch.setattr(os, "unlink", failing(os.unlink, errno.EACCES, 10**6))
    with pytest.raises(PermissionError):
        store.delete([KEY])
    assert store.read(KEY) == b"x"


# ── which file system ───────────────────────────────────────────────────────────────────────────

MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/share /srv/lake nfs4 rw 0 0
tmpfs /srv/lake/fast tmpfs rw 0 0
//server/s /mnt/two\\040words cifs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/x", "ext4"),
        ("/srv/lake/orders", "nfs4"),
        ("/srv/lakes", "ext4"),
        ("/srv/lake/fast/x", "tmpfs"),
        ("/mnt/two words/x", "cifs"),
    ],
)
def test_the_innermost_mount_says_the_file_system(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str, kind: str
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    real = open
    monkeypatch.setattr("builtins.open", lambda name, *a, **k: real(mounts, *a, **k))
    assert file_system_of(path) == kind


def test_only_a_local_disk_shows_every_client_the_same(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store.caching == 0.0
    monkeypatch.setattr(module, "file_system_of", lambda path: "nfs4")
    assert FileStore(store.root).caching == NETWORK_CACHING
    monkeypatch.setattr(module, "file_system_of", lambda path: "")
    assert FileStore(store.root).caching == NETWORK_CACHING


def test_an_unknown_file_system_is_taken_for_a_shared_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.open", failing(open, errno.EACCES, 10**6))
    assert file_system_of("/") == ""


def test_elsewhere_psutil_says_the_file_system(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = file_system_of(str(tmp_path))
    monkeypatch.setattr(module, "LINUX", False)
    assert file_system_of(str(tmp_path)) == here
    assert here


# ── opening ─────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_or_a_file_uri_names_a_store(tmp_path: Path) -> None:
    for name, uri in {
        "a": str(tmp_path / "a"),
        "b": f"file://{tmp_path}/b",
        "e": f"file://localhost{tmp_path}/e",
        "f": f"file:{tmp_path}/f",
        "g": f"FILE://{tmp_path}/g",
        "50% done": f"{tmp_path}/50% done",
    }.items():
        store = open_store(uri)
        assert store.where == str(tmp_path / name)
        assert Path(store.where, "store.json").is_file()
    looked = open_store(str(tmp_path / "c"), testing=False)
    assert not Path(looked.where).exists()
    (tmp_path / "d").write_text("a file")
    with pytest.raises(StoreUnusable, match="Not a directory"):
        open_store(str(tmp_path / "d"), testing=False)


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("a\0b", "NUL"),
        ("s3://b/x", "'s3'"),
        ("S3:/b/x", "'s3'"),
        ("file://rel/x", "no plain file: URI"),
        ("file:rel/x", "no plain file: URI"),
        ("file://localhostx/y", "no plain file: URI"),
        ("file:////x", "no plain file: URI"),
        ("file:///a%20b", "no plain file: URI"),
        ("file:", "no plain file: URI"),
        ("~/state", "'~' is not expanded"),
        (" /x", "padded"),
        ("/x\n", "padded"),
        ("/x\ty", "control character"),
    ],
)
def test_what_names_no_store_is_a_usage_error(
    uri: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is never read as the name of another store, which would know no batch."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=says) as error:
        open_store(uri)
    assert error.value.exit_code == 2
    assert "\n" not in error.value.what
    assert list(tmp_path.iterdir()) == []


def refused(shop: Shop) -> StoreUnusable:
    """Field case 36: one line, exit 1, and nothing was run."""
    with pytest.raises(StoreUnusable) as error:
        shop.run()
    assert error.value.exit_code == 1
    assert "\n" not in error.value.what
    assert str(shop.state) in error.value.what
    assert not shop.path().exists()
    return error.value


@pytest.mark.parametrize("place", [".ubunye", ".ubunye/leases", ".ubunye/leases/shop/daily"])
def test_a_file_in_the_place_of_the_state_folder_is_refused(shop: Shop, place: str) -> None:
    if place == ".ubunye":
        (shop.root / place).write_text("a file")
    else:
        setting = shop.setting()
        (shop.root / place).parent.mkdir(parents=True, exist_ok=True)
        (shop.root / place).write_text("a file")
        assert setting.store.read("store.json") is not None
    assert re.search("File exists|Not a directory", refused(shop).what)


def as_nobody(act: Callable[[], None]) -> None:
    """Carry ``act`` out in a child without root's rights; its failure is ours."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            act()
            code = 0
        except BaseException:  # noqa: BLE001 - said, and told by the exit code
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@pytest.mark.debian
@pytest.mark.parametrize("what", ["no folder yet", "read only", "not even readable", "leases of root's"])
def test_a_state_folder_that_may_not_be_written_is_refused(shop: Shop, what: str) -> None:
    """Field case 36, as a user without root's rights."""
    for folder in [shop.root, *shop.root.parents]:
        if folder.stat().st_uid == 0 and folder.name.startswith(("pytest-", "popen-", "test_", "pipelines")):
            folder.chmod(0o755)
    if what != "no folder yet":
        shop.store()
        (shop.state / "leases").mkdir()
        (shop.state / "leases").chmod(0o755)
        shop.state.chmod({"read only": 0o555, "not even readable": 0o700}.get(what, 0o777))
    as_nobody(lambda: (refused(shop), None)[1])


FULL = """
import errno, os, sys
from pathlib import Path
import pytest
from tests.core.kit import Shop
from airflow_provider_ubunye.core.errors import UbunyeError

root = Path(sys.argv[1])
shop = Shop(root / "pipelines")
shop.run({"": "old"})
def fill():
    filler = os.open(root / "filler", os.O_CREAT | os.O_WRONLY)
    try:
        while True:
            os.write(filler, b"x" * 4096)
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
    os.close(filler)
fill()
with pytest.raises(UbunyeError) as error:
    shop.run({"": "new"}, batch=shop.batch("2026-11-02"))
assert "No space left" in error.value.what, error.value.what
assert "\\n" not in error.value.what
print(type(error.value).__name__, error.value.what)
assert shop.rows() == ["old"], shop.rows()
with pytest.raises(UbunyeError, match="already finished"):
    shop.run({"": "again"})
os.unlink(root / "filler")
shop.run({"": "new"}, batch=shop.batch("2026-11-02"))
assert shop.rows() == ["new", "old"], shop.rows()
assert shop.debris() == [], shop.debris()
"""


@pytest.mark.debian
def test_a_full_disk_refuses_the_run_and_the_next_is_exact(tmp_path: Path) -> None:
    """Field cases 16 and 36: a small tmpfs of its own."""
    script = tmp_path / "full.py"
    script.write_text(FULL)
    disk = tmp_path / "disk"
    disk.mkdir()
    command = f'mount -t tmpfs -o size=256k tmpfs "{disk}" && exec "{sys.executable}" "{script}" "{disk}"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", command],
        check=False,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_refusal_says_what_the_system_said() -> None:
    assert "Input/output error" in unusable("/s", OSError(errno.EIO, "Input/output error")).what
    assert "odd" in unusable("/s", OSError("odd")).what
