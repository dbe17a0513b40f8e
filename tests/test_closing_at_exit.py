"""Files that a library reads on its own threads are released before Python shuts down."""

import threading
import time

from eigengame._system import closing_at_exit
from eigengame._system.closing_at_exit import close_all, closed_at_exit, released_before_exit
from eigengame.sources import as_source


class File:
    pass


def test_a_generator_that_an_error_left_open_is_closed():
    closed = []

    def read():
        try:
            yield 1
        finally:
            closed.append(True)

    reading = closed_at_exit(read())
    next(reading)
    close_all()
    assert closed == [True]


def test_the_exit_waits_until_another_thread_has_released_a_file():
    held = [released_before_exit(File())]

    def release():
        time.sleep(0.05)
        held.clear()

    threading.Thread(target=release).start()
    close_all()
    assert held == []


def test_the_exit_does_not_wait_for_a_file_for_ever(monkeypatch):
    monkeypatch.setattr(closing_at_exit, "PATIENCE", 0.01)
    kept = released_before_exit(File())
    close_all()
    assert kept in closing_at_exit._files


def test_a_text_table_that_is_half_read_is_released(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "1.5,2\n" * 100)
    reading = as_source(path).blocks(0, 10)
    next(reading)
    assert len(closing_at_exit._files) == 1
    close_all()
    assert len(closing_at_exit._files) == 0
