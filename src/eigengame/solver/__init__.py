"""One fit: from a source and options to a result.

Open `fit.py` first, then `solve.py`. The folders are parts of a fit. CONTRIBUTING.md lists them in the order of
their imports.
"""
