"""A drifting process: control limits, an alarm, and the sensor behind it.

A model of normal operation raises an alarm for rows that differ from it. Two statistics are compared with
limits: T2, the distance from the mean within the components, and SPE, the squared distance from the
components. If normal operation drifts, a fixed model has more and more false alarms; a model with a
forgetting factor can follow the drift. It must not learn a fault, so batches with many alarms are left out.

The process is generated: 20 sensors in different units, driven by three factors. Sensor 4 drifts all the
time, which is normal here. From row 2000 on, sensor 11 has a fault.
"""

# %%
import copy

import matplotlib.pyplot as plt
import numpy as np

from eigengame import EigenGamePCA, prepare

ROWS, BATCH, FAULT = 3000, 50, 2000
rng = np.random.default_rng(0)
mixing = rng.standard_normal((3, 20))
units = 10.0 ** rng.integers(-2, 3, 20)


def process(n, start=0, drift=0.0):
    """Return n rows of 20 sensors."""
    rows = rng.standard_normal((n, 3)) @ mixing + 0.5 * rng.standard_normal((n, 20))
    rows[:, 4] += drift * np.arange(start, start + n)
    return 50 * units + rows * units


print(f"data: a generated process, {ROWS} rows of 20 sensors in batches of {BATCH}")

# %%
# Sensors in different units are divided by their standard deviations, which are learnt from a reference
# period. Limits come from further rows of normal operation, which are not part of the fit: 1 % of such rows
# are above each.
pca = EigenGamePCA(3, forget=0.998, random_state=0)
pca.partial_fit(prepare(process(2000), scale="two-pass"))
limits = pca.control_limits(process(1000), confidence=0.99)
fixed = copy.deepcopy(pca)
print(f"limits: {limits}")

# %%
# Each batch is monitored by both models. The adaptive one then learns it, unless a fifth of its rows are
# alarms.
found = {"fixed model": [], "adaptive model": []}
for start in range(0, ROWS, BATCH):
    batch = process(BATCH, start, drift=0.002)
    if start >= FAULT:
        batch[:, 11] += 6 * units[11]
    found["fixed model"].append(fixed.monitor(batch, limits=limits))
    found["adaptive model"].append(pca.monitor(batch, limits=limits))
    if found["adaptive model"][-1].alarms.mean() < 0.2:
        pca.partial_fit(batch)

# %%
# An alarm that should be acted on is here a batch of which more than half of the rows are above a limit. The
# drift makes the fixed model raise it long before the fault. The adaptive model raises it with the fault, and
# names the sensor that contributes most.
first = {}
for name, monitored in found.items():
    rates = np.array([one.alarms.mean() for one in monitored])
    first[name] = BATCH * int(np.argmax(rates > 0.5))
    before = rates[: FAULT // BATCH].mean()
    print(f"{name}: {before:.1%} of the rows before the fault are alarms")
    print(f"    first batch with an alarm in more than half of its rows: row {first[name]}")
    after = monitored[FAULT // BATCH :]
    t2, spe = (np.mean([getattr(one, f"{x}_alarms") for one in after]) for x in ("t2", "spe"))
    print(f"    alarms of rows with the fault: {t2:.0%} by T2, {spe:.0%} by SPE")
alarm = found["adaptive model"][first["adaptive model"] // BATCH]
sensor, share = alarm.top_features(int(alarm.spe.argmax()), "spe")[0]
print(f"largest contribution to the SPE of the alarm: {sensor}, {share:.0%}")

# %%
# The fault breaks a relation between sensors, so it appears in SPE and hardly in T2. Every third row is
# drawn.
COLOURS = {"fixed model": "#E69F00", "adaptive model": "#0072B2"}
figure, panels = plt.subplots(2, 1, figsize=(9, 5), layout="constrained", sharex=True)
for axes, statistic, label in zip(panels, ("t2", "spe"), ("T2", "SPE"), strict=True):
    for name, monitored in found.items():
        values = np.concatenate([getattr(one, statistic) for one in monitored])
        axes.plot(range(0, ROWS, 3), values[::3], ".", ms=3, color=COLOURS[name], label=name)
    limit = getattr(limits, statistic)
    axes.axhline(limit, color="0.2", lw=1, ls="--", label="limit (99 %)")
    axes.axvspan(FAULT, ROWS, color="0.93", zorder=0)
    axes.set(ylabel=label, xlim=(0, ROWS))
    axes.spines[["top", "right"]].set_visible(False)
panels[1].set(xlabel="row", yscale="log")
panels[1].text(FAULT + 20, limits.spe / 4, "fault of sensor 11")
panels[1].text(20, limits.spe * 5, "sensor 4 drifts")
handles, labels = panels[0].get_legend_handles_labels()
legend = figure.legend(handles, labels, loc="outside upper center", frameon=False, ncols=3)
for handle in legend.legend_handles[:2]:
    handle.set_markersize(8)
figure.savefig("process.png", dpi=100)
