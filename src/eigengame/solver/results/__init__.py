"""What a fit returns: components in the units of the data, and how the run ended.

Open `result.py` first.
"""
