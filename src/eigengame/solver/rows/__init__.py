"""Rows of a source as batches: arrays of one shape on the host or on a device, with their mean and variance.

Open `batches.py` first.
"""
