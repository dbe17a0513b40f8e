"""Fixtures for the tests of sources."""

import pytest


@pytest.fixture
def memory():
    """Return fsspec's file system in memory, which is emptied after the test."""
    files = pytest.importorskip("fsspec").filesystem("memory")
    yield files
    files.rm("/", recursive=True)
