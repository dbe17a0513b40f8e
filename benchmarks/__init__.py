"""Speed, memory and accuracy, measured side by side: see README.md in this folder."""
