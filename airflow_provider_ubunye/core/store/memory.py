"""A batch store in memory: for tests, for the model checker, and for runs without a lease."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable


class MemoryStore:
    """A store that lives as long as the object. Protects nothing beyond this process.

    :param clock: seconds, the store's own clock.
    """

    where = "memory"
    _caching = 0.0

    @property
    def caching(self) -> float:
        return self._caching

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self.data: dict[str, bytes] = {}
        self._beats: dict[str, float] = {}

    def create(self, key: str, data: bytes) -> bool:
        with self._lock:
            if key in self.data:
                return False
            self.data[key] = data
            self._beats[key] = self._clock()
            return True

    def read(self, key: str) -> bytes | None:
        return self.data.get(key)

    def list(self, prefix: str) -> list[str]:
        with self._lock:
            return sorted(k for k in self.data if k.startswith((f"{prefix}/", f"{prefix}.")))

    def delete(self, keys: Iterable[str]) -> None:
        for key in keys:
            with self._lock:
                self.data.pop(key, None)
                self._beats.pop(key, None)

    def put(self, key: str, data: bytes, check: Callable[[], None] = lambda: None) -> None:
        check()
        with self._lock:
            self.data[key] = data
            self._beats[key] = self._clock()

    def beat(self, key: str) -> bool:
        with self._lock:
            if key not in self.data:
                return False
            self._beats[key] = self._clock()
            return True

    def age(self, key: str) -> float | None:
        with self._lock:
            beaten = self._beats.get(key)
            return None if beaten is None else self._clock() - beaten
