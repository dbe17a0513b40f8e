"""Rows from PyTorch: tensors, data loaders and the activations of networks."""
