"""Exact solutions of small problems: the covariance of few features, or the inner products of few rows.

Open `covariance.py` first, then `row_gram.py`.
"""
