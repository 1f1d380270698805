"""Airflow without a home of the user's."""

from __future__ import annotations

from tests.airflowhome import isolate

isolate()
