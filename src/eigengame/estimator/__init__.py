"""The scikit-learn interface."""

from eigengame.estimator.pca import EigenGamePCA as EigenGamePCA
