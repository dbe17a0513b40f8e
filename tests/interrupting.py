"""A progress callback that presses Ctrl-C."""


class Interrupting:
    """Presses Ctrl-C after so many batches."""

    def __init__(self, after):
        self.left = after

    def batch(self, at):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
