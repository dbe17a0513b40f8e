"""Benchmarks of speed, memory and accuracy: see README.md in this folder."""
