"""Lanczos' method for rows in memory, certified by its random start.

Open `lanczos.py` first. The rows are a `sparse_problem.py` or a `dense_problem.py`.
"""
