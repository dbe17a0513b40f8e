"""A certificate explained: bounds, an estimate, a near-tie, and a tie.

A certificate bounds the angle between each component and the true one, which is not known. How small the
bound can be depends on the gap between variances: two components of nearly equal variance are hard to tell
apart, and two of equal variance are not determined by the data at all. What is determined then is their
span, and the certificate bounds that.

The data of this program is generated with a prescribed spectrum, so that the true components are known and
every bound can be compared with the true angle. Components 3 and 4 are a near-tie, components 5 and 6 a
tie.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from eigengame import EigenGamePCA
from eigengame.metrics import angular_error, principal_angles
from eigengame.testing import rows_with

N, K = 4000, 8
leading = [100, 80, 60, 59.8, 40, 40, 25, 15]
variances = np.r_[leading, 6 / np.sqrt(np.arange(1, 93))]
problem = rows_with(variances * (N - 1), N, seed=0)
print(f"data: generated, {N} x {len(variances)}, leading variances {leading}")

# %%
# One pass over the data, as for a stream. The bound holds with the probability in the first line. The
# estimate is a typical size of the angle and guarantees nothing. Components 5 and 6 have no bound.
options = {"algorithm": "remembered", "batch_size": 500, "center": False, "random_state": 0}
one_pass = EigenGamePCA(K, tol=None, **options).fit(problem.data)
print(one_pass.certificate_)

# %%
# With `tol` the data is read again until every component is certified, or the span of those that cannot be
# separated: a cluster. The near-tie is resolved by further passes. The tie is not, and the certificate says
# so: use components 5 and 6 together.
refined = EigenGamePCA(K, tol=1e-3, **options).fit(problem.data)
print(refined.outcome_)
print(refined.certificate_)

# %%
# The comparison with the truth. Every angle is below its bound. For the tie, the angle of the span is the
# largest angle between the plane of both components and the true plane.
fits = {"one pass": one_pass, f"{refined.n_passes_} passes": refined}
angles, holds = {}, {}
for name, pca in fits.items():
    angles[name] = angular_error(pca.components_, problem.components)
    holds[name] = angles[name] <= pca.certificate_.angle
    print(f"{name}: {holds[name].sum()} of {K} angles are below their bounds")
spans = []
for cluster in refined.certificate_.clusters:
    rows = list(cluster.members)
    spans.append(principal_angles(refined.components_[rows], problem.components[rows]).max())
    print(f"span of components {rows[0] + 1} to {rows[-1] + 1}: angle {spans[-1]:.1e}")
    print(f"    bound {cluster.angle:.1e}, below it: {spans[-1] <= cluster.angle}")

# %%
# Triangles are bounds, dots true angles. Where a bound is missing, the diamond is an estimate without
# guarantee. The grey bar marks the tie: single components are arbitrary there, and after further passes its
# span is known.
numbers = np.arange(1, K + 1)
figure, panels = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained", sharey=True)
for axes, (name, pca) in zip(panels, fits.items(), strict=True):
    bounds, certificate = pca.certificate_.angle, pca.certificate_
    known = bounds < np.pi / 2
    axes.axvspan(4.6, 6.4, color="0.92", zorder=0)
    axes.vlines(numbers[known], angles[name][known], bounds[known], color="0.8", lw=3)
    axes.plot(numbers, angles[name], "o", color="#0072B2", label="true angle")
    axes.plot(numbers[known], bounds[known], "v", color="#D55E00", label="certified bound")
    if certificate.estimate is not None:
        axes.plot(numbers[~known], certificate.estimate[~known], "D", mfc="none", color="#009E73")
    for cluster, span in zip(certificate.clusters, spans, strict=False):
        middle = np.mean(cluster.members) + 1
        axes.plot([middle - 0.5, middle + 0.5], [span] * 2, color="#0072B2", lw=2)
        axes.plot([middle - 0.5, middle + 0.5], [cluster.angle] * 2, color="#D55E00", lw=2)
    axes.set(yscale="log", xlabel="component", xticks=numbers, title=name)
    axes.spines[["top", "right"]].set_visible(False)
panels[0].set_ylabel("angle to the true component (rad)")
panels[0].plot([], [], "D", mfc="none", color="#009E73", label="estimate, no bound")
panels[0].plot([], [], color="#D55E00", lw=2, label="bound of the span")
panels[0].plot([], [], color="#0072B2", lw=2, label="true angle of the span")
handles, labels = panels[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside lower center", frameon=False, ncols=5)
figure.savefig("certificate.png", dpi=100)
