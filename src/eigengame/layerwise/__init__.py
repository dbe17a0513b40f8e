"""One fit for each layer of a network, in one forward pass."""

from eigengame.layerwise.fit import fit_layers as fit_layers
from eigengame.layerwise.fits import LayerFits as LayerFits
