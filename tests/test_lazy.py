"""Attributes that are computed when they are first read."""

import threading
from dataclasses import dataclass

from eigengame._system.lazy import lazy
from eigengame.solver.streams.one_pass import OnePassBlock


@dataclass(frozen=True)
class Squares:
    numbers: tuple[int, ...]

    @lazy
    def total(self) -> int:
        """Sum of the squares."""
        CALLS.append(self.numbers)
        return sum(one**2 for one in self.numbers)


CALLS = []


def test_a_value_is_computed_once_for_each_instance():
    one, other = Squares((1, 2)), Squares((3,))
    assert (one.total, one.total, other.total) == (5, 5, 9)
    assert CALLS == [(1, 2), (3,)]
    assert Squares.total.__doc__ == "Sum of the squares."


def test_a_computation_that_does_not_end_blocks_no_other_instance():
    # As if an interrupt had left the lock of the class acquired.
    begun, released = threading.Event(), threading.Event()

    class Waiting:
        def __init__(self, first):
            self.first = first

        @lazy
        def value(self):
            if self.first:
                begun.set()
                released.wait(60)
            return 1

    thread = threading.Thread(target=lambda: Waiting(True).value)
    thread.start()
    assert begun.wait(60)
    other = threading.Thread(target=lambda: Waiting(False).value, daemon=True)
    other.start()
    other.join(10)
    ended = not other.is_alive()
    released.set()
    thread.join()
    assert ended


def test_attributes_of_certificates_have_no_lock():
    # The lock of functools.cached_property of Python 3.11 is one for all instances.
    assert isinstance(OnePassBlock.__dict__["level"], lazy)
