"""One update at the full size of the paper on one GPU: time, bytes, rate, and the ratio to a lower bound.

The lower bound ("floor") is the time to move the batch twice, the players twice and the new players once, at the
copy rate of the card. Each algorithm is timed. Long runs of ten thousand updates then measure how orthonormal the
players remain, and short runs are compared with float64 on the CPU.

python -m benchmarks.gpu_updates [--features 20371456] [--updates 10000]
"""

import argparse
import datetime
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from eigengame import make
from eigengame._play import _update
from eigengame.algorithms import InGramSpace, Remembered
from eigengame.algorithms.in_gram_space import REMEASURED, current_overlaps
from eigengame.game import DenseRows
from eigengame.linalg.wide import combined, inner_products
from eigengame.metrics import angular_error
from eigengame.sharding.placement import ONE_DEVICE
from eigengame.solver.planning.plan import CARRIED
from eigengame.solver.refinement.products import _accumulate
from eigengame.solver.streams.carried_overlaps import step_with_overlaps
from eigengame.solver.streams.streaming import MODES

ROWS, PROBES = 128, 16
FEATURES = 20_371_456
OPTIONS = {"alpha": {"step_size": 1e-9}, "mu": {"step_size": 1e-9}, "oja": {"step_size": 1e-9}}
"""Step sizes for rows of 20 million numbers near 1, whose squares sum to 2e7."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--features", type=int, default=FEATURES)
    parser.add_argument("--updates", type=int, default=10_000, help="updates of the long runs")
    parser.add_argument("--table-only", action="store_true", help="omit long runs and float64")
    parser.add_argument("--gram-only", action="store_true", help="omit updates outside Gram space")
    parser.add_argument(
        "--lasting", type=int, default=FEATURES // 8, help="features of the long runs"
    )
    options = parser.parse_args()
    card = jax.devices()[0]
    print(f"{datetime.date.today()}, {card.device_kind}, JAX {jax.__version__}")
    print(f"batches of {ROWS} rows in bfloat16, {options.features:,} features, players in float32")
    rows = [batch(options.features, seed) for seed in range(3)]
    rate = copy_rate(options.features)
    print(f"\nThe card copies at {rate:.0f} GB/s, bytes read and written together.")
    print(f"{'update':>34} {'K':>3} {'ms':>7} {'GB':>6} {'GB/s':>6} {'floor':>6} {'ratio':>6}")
    for count in (32, 48):
        for name in OPTIONS:
            if not options.gram_only:
                plain = make(name, **OPTIONS[name])
                report(name, count, rate, rows, of_algorithm(plain, count, rows))
            gram = InGramSpace(make(name, **OPTIONS[name]))
            report(f"{name} in Gram space", count, rate, rows, of_algorithm(gram, count, rows))
        if not options.gram_only:
            score = Remembered(extra=0, space="score")
            report("remembered", count, rate, rows, of_algorithm(score, count, rows))
        report("remembered in Gram space", count, rate, rows, of_game(count, rows, False))
        report("remembered, centred", count - 1, rate, rows, of_game(count - 1, rows, True))
        moments = of_stream(count - 1, rows, True)
        report("with mean and variance by feature", count - 1, rate, rows, moments)
        del moments
        probed = of_stream(count - 1, rows, True, PROBES)
        report(f"the same with {PROBES} probes", count - 1, rate, rows, probed)
        del probed
        report("one batch of a pass of refinement", count, rate, rows, of_pass(count, rows))
        parts(count, rows)
    if options.table_only:
        return
    rows = [batch(options.lasting, seed) for seed in range(3)]
    print(f"\nLong runs on {options.lasting:,} features:")
    for name in ("remembered", *OPTIONS):
        lasting(name, rows, options.updates)
    print()
    check()


def batch(d: int, seed: int) -> DenseRows:
    """Return rows in bfloat16 with some directions of larger variance."""

    @jax.jit
    def make() -> jax.Array:
        strong, weak = jax.random.split(jax.random.key(seed))
        strengths = 0.5 * 0.9 ** jnp.arange(64)
        scores = jax.random.normal(strong, (ROWS, 64)) * strengths[None, :]
        shared = jax.random.rademacher(jax.random.key(99), (64, d), jnp.bfloat16)
        noise = jax.random.normal(weak, (ROWS, d), jnp.bfloat16)
        return noise + jnp.matmul(scores.astype(jnp.bfloat16), shared)

    return DenseRows(make(), jnp.ones(ROWS))


def copy_rate(d: int) -> float:
    """Return the GB that the card reads and writes per second in one large copy."""
    one = jnp.ones((64, d), jnp.float32)
    copy = jax.jit(lambda array: array + 1)
    return 2 * one.nbytes / median_ms(lambda: copy(one), 5) / 1e6


def median_ms(run: Callable[[], Any], repeats: int) -> float:
    """Return the milliseconds per run of `repeats` consecutive runs; the median of five measurements."""
    jax.block_until_ready([run() for _ in range(2)][-1])
    tries = []
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(repeats):
            last = run()
        jax.block_until_ready(last)
        tries.append((time.perf_counter() - began) / repeats)
    return 1e3 * float(np.median(tries))


def of_algorithm(algorithm: Any, k: int, rows: list[DenseRows]) -> Callable[[], Any]:
    """Return a function that computes the next update of an algorithm."""
    place, turn = ONE_DEVICE, iter(range(10**9))
    state = [algorithm.init(begin(k, rows[0].width))]

    def run() -> Any:
        state[0], _ = _update(algorithm, place, rows[next(turn) % len(rows)], state[0])
        return state[0]

    return run


def of_game(k: int, rows: list[DenseRows], center: bool) -> Callable[[], Any]:
    """Return a function that computes the next update of the remembered game, with tracked overlaps."""
    game, turn = Remembered(extra=0, center=center), iter(range(10**9))
    begun = MODES[CARRIED].begin(game, k, rows[0].width, np.float32, 0, ONE_DEVICE)
    now = [(begun.state, begun.overlaps)]

    @jax.jit
    def update(some: DenseRows, state: Any, overlaps: jax.Array) -> Any:
        overlaps = current_overlaps(game.wide(state), some, overlaps, state.step)
        return game.update_in_span(some, state, overlaps)

    def run() -> Any:
        now[0] = update(rows[next(turn) % len(rows)], *now[0])
        return now[0]

    return run


def of_stream(k: int, rows: list[DenseRows], center: bool, probes: int = 0) -> Callable[[], Any]:
    """Return a function that computes the next update as a fit does, with the moments of every feature."""
    game, turn = Remembered(extra=0, center=center), iter(range(10**9))
    begun = MODES[CARRIED].begin(game, k, rows[0].width, np.float32, 0, ONE_DEVICE, probes)
    now = [(begun.state, begun.moments, begun.overlaps, begun.probes)]
    del begun

    def run() -> Any:
        now[0] = step_with_overlaps(game, rows[next(turn) % len(rows)], *now[0])
        return now[0]

    return run


def of_pass(k: int, rows: list[DenseRows]) -> Callable[[], Any]:
    """Return a function that adds the contribution of the next batch to M V."""
    players, turn = begin(k, rows[0].width), iter(range(10**9))
    total = [jnp.zeros_like(players)]

    def run() -> Any:
        total[0] = _accumulate(rows[next(turn) % len(rows)], players, total[0])
        return total[0]

    return run


def begin(k: int, d: int) -> jax.Array:
    """Return random orthonormal players."""
    begun = MODES[CARRIED].begin(Remembered(extra=0), k, d, np.float32, 0, ONE_DEVICE)
    return begun.state.memory.players


def report(name: str, k: int, rate: float, rows: list[DenseRows], run: Callable[[], Any]) -> None:
    """Time an update and print its line."""
    d = rows[0].width
    needed = (2 * rows[0].values.nbytes + 3 * 4 * k * d) / 1e9
    # As many runs as there are between two measurements of overlaps, so that each includes one.
    ms, floor = median_ms(run, REMEASURED), 1e3 * needed / rate
    print(
        f"{name:>34} {k:>3} {ms:>7.2f} {needed:>6.1f} {1e3 * needed / ms:>6.0f} {floor:>6.2f} "
        f"{ms / floor:>6.2f}",
        flush=True,
    )


def parts(k: int, rows: list[DenseRows]) -> None:
    """Print the times of the two wide products; the rest of an update is work on small matrices."""
    players = [begin(k, rows[0].width)]
    first = jax.jit(lambda v, x: inner_products([v], x))
    second = jax.jit(lambda some, lengths, v, x: combined(some, lengths, [v], x))
    small = jnp.eye(k, k + ROWS), jnp.ones(k)
    one = median_ms(lambda: first(players[0], rows[0].values), 5)
    two = median_ms(lambda: second(*small, players[0], rows[0].values), 5)
    print(f"{'the two wide products':>34} {k:>3} {one + two:>7.2f}   ({one:.2f} and {two:.2f} ms)")
    again = jax.jit(lambda v, x: current_overlaps([v], x, jnp.eye(k), jnp.zeros((), jnp.int32)))
    three = median_ms(lambda: again(players[0], rows[0]), 5)
    print(f"{'overlaps, once in':>34} {REMEASURED:>3} {three:>7.2f}")
    gram = jnp.cov(jax.random.normal(jax.random.key(0), (k + ROWS, 4 * (k + ROWS))))
    solve = jax.jit(jnp.linalg.eigh)
    print(
        f"{'an eigenproblem of size':>34} {k + ROWS:>3} {median_ms(lambda: solve(gram), 5):>7.2f}"
    )


def check(d: int = 2**17, updates: int = 20) -> None:
    """Print the angles between updates on this device and in float64 on the CPU."""
    rows = [batch(d, seed) for seed in range(4)]
    start = np.asarray(begin(32, d))
    step = 4e-5 * ROWS / d
    for name in (*OPTIONS, "remembered"):
        plain = make(name, step_size=step) if name in OPTIONS else Remembered(extra=0, space="gram")
        mine = _played(InGramSpace(plain), jnp.asarray(start), rows, updates)
        single = _played(plain, jnp.asarray(start), rows, updates)
        with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
            wide = [DenseRows(jnp.asarray(np.asarray(one.values), jnp.float64)) for one in rows]
            true = _played(plain, jnp.asarray(start, jnp.float64), wide, updates)
        apart, usual = angular_error(mine, true), angular_error(single, true)
        moved = angular_error(true, start)
        print(
            f"{name}: after {updates} updates of {d:,} features, in which players move by "
            f"{moved.min():.2g} to {moved.max():.2g}, they are {np.median(apart):.1e} (median) to "
            f"{apart.max():.1e} from float64 on the CPU; plain float32 is {np.median(usual):.1e} to "
            f"{usual.max():.1e} from it",
            flush=True,
        )


def _played(algorithm: Any, players: jax.Array, rows: list[DenseRows], updates: int) -> np.ndarray:
    """Return the players after some updates, in float64."""
    state = algorithm.init(players)
    for number in range(updates):
        state, _ = _update(algorithm, ONE_DEVICE, rows[number % len(rows)], state)
    return np.asarray(algorithm.components(state), np.float64)


def lasting(name: str, rows: list[DenseRows], updates: int) -> None:
    """Print how orthonormal 32 players are after many updates; those of alpha and mu only have unit norm."""
    gram = InGramSpace(make(name, **OPTIONS[name])) if name in OPTIONS else None
    run = of_stream(32, rows, False) if gram is None else of_algorithm(gram, 32, rows)
    began = time.perf_counter()
    for _ in range(updates):
        last = run()
    state = jax.block_until_ready(last)
    seconds = time.perf_counter() - began
    players = state[0].memory.players if gram is None else gram.components(state)
    sums = np.zeros((32, 32))
    # Summed in parts in float64: one long sum in float32 would have a larger error of its own.
    for begin_ in range(0, players.shape[1], 2**20):
        some = np.asarray(players[:, begin_ : begin_ + 2**20], np.float64)
        sums += some @ some.T
    lengths = np.abs(np.diag(sums) - 1).max()
    overlaps = np.abs(sums - np.diag(np.diag(sums))).max()
    print(
        f"{name}: after {updates:,} updates in {seconds:.0f} s squares of lengths are off 1 by {lengths:.1e}, "
        f"overlaps at most {overlaps:.1e}",
        flush=True,
    )


if __name__ == "__main__":
    main()
