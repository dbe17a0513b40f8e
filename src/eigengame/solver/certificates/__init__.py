"""Certificates: bounds on the angle between computed and true components, computed from small matrices.

Nothing here reads data. Open `certificate.py` first, then `bounds.py`, `rounding.py` and `probes.py`.
"""
