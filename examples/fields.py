"""Climate-like fields: patterns on a map, with cells weighted by their area.

The components of a field over time are known as empirical orthogonal functions: maps of the places that
vary together, with a series that says how much of the pattern each month has. On a regular grid of
latitudes and longitudes the cells near the poles are small but many. Without weights their variance counts
as much as that of large cells. With `weights="coslat"` the variance of a cell counts by its area. This
program shows the difference, on a field whose patterns are known because it is generated: an oscillation in
a tropical ocean, changes near both poles, and noise.
"""

# %%
# The field is an xarray object with land as NaN. Files in netCDF format are opened in the same way.
import matplotlib.pyplot as plt
import numpy as np
import xarray as xr

import eigengame.xarray

rng = np.random.default_rng(0)
lat, lon = np.arange(-88, 90, 4.0), np.arange(2.5, 360, 5)
time = np.arange("1990-01", "2020-01", dtype="datetime64[M]").astype("datetime64[ns]")
months = np.arange(len(time))
y, x = np.meshgrid(lat, lon, indexing="ij")


def spot(north, east, height, width):
    """Return a smooth spot on the map."""
    return np.exp(-(((y - north) / height) ** 2) - ((x - east) / width) ** 2)


index = np.sin(2 * np.pi * months / 46) + 0.4 * np.sin(2 * np.pi * months / 19)
tropical = spot(0, 210, 14, 45) - 0.5 * spot(25, 160, 12, 30) - 0.5 * spot(-25, 160, 12, 30)
polar = 0.8 * np.cos(np.deg2rad(x)) * np.exp(-(((90 - np.abs(y)) / 14) ** 2))
values = index[:, None, None] * tropical + rng.standard_normal((len(time), 1, 1)) * polar
values += 0.4 * rng.standard_normal(values.shape)
land = spot(20, 20, 30, 22) + spot(45, 80, 20, 45) + spot(45, 260, 20, 25) + spot(-15, 300, 25, 16)
values[:, land > 0.4] = np.nan
coordinates = {"time": time, "lat": lat, "lon": lon}
field = xr.DataArray(values, coordinates, ("time", "lat", "lon"), name="temperature")
print(f"data: generated, {len(time)} months on a grid of {len(lat)} x {len(lon)} cells")

# %%
# Land is left out by itself. Results are xarray objects with the coordinates of the field, and the bound of
# each component is a coordinate too.
models = {
    "weighted by area": eigengame.xarray.fit(field, 3, weights="coslat", random_state=0),
    "without weights": eigengame.xarray.fit(field, 3, random_state=0),
}
for name, model in models.items():
    share = model.explained_variance_ratio()
    bound = float(share.angle_bound.max())
    sea = int(model.components().sel(mode=1).notnull().sum())
    found = abs(np.corrcoef(model.scores().sel(mode=1), index)[0, 1])
    print(
        f"{name}: {sea} cells, component 1 explains {float(share[0]):.0%}, largest bound {bound:.0e}"
    )
    print(f"    correlation of its scores with the tropical oscillation: {found:.2f}")

# %%
# `components(weighted=False)` are patterns in the units of the field: times the scores, they are anomalies.
# Here they are scaled to the size that they have in a typical month. Both maps show component 1.
figure = plt.figure(figsize=(9.5, 4.9), layout="constrained")
grid = figure.add_gridspec(2, 2, height_ratios=[1.5, 1])
for column, (name, model) in enumerate(models.items()):
    axes = figure.add_subplot(grid[0, column])
    pattern = model.components(weighted=False, scaled=True).sel(mode=1)
    axes.set_facecolor("0.75")
    picture = axes.pcolormesh(lon, lat, pattern, cmap="RdBu_r", vmin=-1, vmax=1, rasterized=True)
    axes.set(title=name, xlabel="longitude", xticks=range(0, 361, 60), yticks=range(-60, 61, 30))
    axes.set_ylabel("latitude" if column == 0 else "")
figure.colorbar(picture, ax=figure.axes, label="degrees in a typical month", shrink=0.9)

axes = figure.add_subplot(grid[1, :])
scores = models["weighted by area"].scores(normalised=True).sel(mode=1)
sign = np.sign(np.corrcoef(scores, index)[0, 1])
axes.plot(time, index / index.std(), color="0.75", lw=5, label="tropical oscillation")
axes.plot(time, sign * scores, color="#0072B2", lw=1.2, label="scores of component 1, weighted")
axes.set(xlabel="year", ylabel="standard deviations", xlim=(time[0], time[-1]), ylim=(-2.6, 3.8))
axes.legend(frameon=False, ncols=2, loc="upper right")
axes.spines[["top", "right"]].set_visible(False)
figure.savefig("fields.png", dpi=100)
