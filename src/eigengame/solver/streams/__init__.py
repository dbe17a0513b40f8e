"""The remembered game: one pass over batches, the memory that it leaves, and the certificate of one pass.

Open `streaming.py` first, then `batch_step.py` for one update, and `stream.py` for what `partial_fit` continues and
`merge` combines.
"""
