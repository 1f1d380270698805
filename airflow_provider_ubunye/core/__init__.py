"""The protocol: batches, their log, lease, landing and run, free of Airflow, pandas, pyarrow and Spark."""
