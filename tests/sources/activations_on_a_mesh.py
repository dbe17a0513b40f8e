"""Run by test_activations in a process with four devices: fits of activations on meshes."""

import numpy as np

from eigengame import activations
from tests.game_pca import game_pca
from tests.sources.test_activations import BATCHES, K, network


def main():
    source = activations(network, BATCHES, dtype="bfloat16")
    one = game_pca(K, random_state=0).fit(source)
    # 161 features are padded to 164, and two devices share 256 rows.
    for mesh in ({"features": 4}, {"data": 2, "features": 2}):
        found = game_pca(K, random_state=0, mesh=mesh).fit(source)
        np.testing.assert_allclose(found.components_, one.components_, atol=1e-3)
        np.testing.assert_allclose(found.mean_, one.mean_, atol=1e-5)
    print("all as on one device")


if __name__ == "__main__":
    main()
