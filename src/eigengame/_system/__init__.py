"""What the package needs of the machine: free memory, files, locks, the compilation cache."""
