"""GPU kernels for wide rows. Imported only when used, since they need Pallas for Triton."""
