"""Fitted components for other libraries: torch modules, LoRA, scikit-learn, and files."""
