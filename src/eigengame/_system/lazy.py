"""Attributes that are computed once, when they are first read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazy(Generic[T]):
    """`functools.cached_property` without its lock, as Python 3.12 has it.

    The lock of Python 3.11 is shared by all instances of a class. An interrupt just after its acquisition can leave
    it acquired: then every other thread that reads the attribute of any instance waits for ever. Without a lock two
    threads may both compute the value, which is the same.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute, self.__doc__ = compute, compute.__doc__
        self.name = compute.__name__

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> lazy[T]: ...

    @overload
    def __get__(self, instance: object, owner: type | None = None) -> T: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Compute the value and store it in place of the attribute."""
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.compute(instance)
        return value
