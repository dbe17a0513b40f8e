"""Every decision about a fit: from the data and options (`problem.py`) to the plan (`plan.py`).

Open `make_plan.py` first, then `routes.py`.
"""
