"""Empirical orthogonal functions: components of xarray fields, with labels and certificates.

Needs xarray: ``pip install "eigengame[xarray]"``. It is imported on first use.
"""

from eigengame.xarray.fitting import fit as fit
from eigengame.xarray.fitting import load as load
from eigengame.xarray.model import FieldModel as FieldModel
from eigengame.xarray.rotated import RotatedField as RotatedField
