"""Services of the operating system: free memory, atomic writes, locks, the compilation cache."""
