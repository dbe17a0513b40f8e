"""Passes over all rows: each folds batches into a carry, with progress callbacks and checkpoints.

Open `passes.py` first.
"""
