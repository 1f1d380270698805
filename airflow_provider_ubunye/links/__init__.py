"""Airflow operator links."""
