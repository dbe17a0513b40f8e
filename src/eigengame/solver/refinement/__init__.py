"""Refinement: further passes that multiply players with $M$, until their certificate meets the tolerance.

Open `refine.py` first.
"""
