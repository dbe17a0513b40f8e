"""The remembered game: one pass over batches, the memory that it leaves, and the certificate of one pass.

Open `streaming.py` first, then `stream.py`, which is what `partial_fit` continues and `merge` combines.
"""
