"""The experiments, one module each; `<name>_*` modules and packages hold their parts."""
