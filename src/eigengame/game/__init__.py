"""The game itself: pure functions of scores. Nothing here knows where rows come from."""
