"""Array operations that know nothing about players."""
