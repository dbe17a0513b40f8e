"""One fit: from a source and options to a result."""
