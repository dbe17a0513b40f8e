"""The estimator for tests of the remembered game itself, which small data does not take by default."""

from eigengame import EigenGamePCA


def game_pca(*arguments, **options):
    """Return an estimator that plays the remembered game; one pass unless `tol` or `passes` is given."""
    return EigenGamePCA(*arguments, **{"algorithm": "remembered", "tol": None} | options)
