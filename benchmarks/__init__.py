"""What the protocol costs, measured against the bare operation. Run with ``python -m benchmarks``."""
