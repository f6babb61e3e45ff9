"""The tables of docs/theory.md: the divergence and its bounds, the variance of the gradient, and the drawn category.

python benchmarks/theorem.py
"""

import numpy as np

from tdce_reproduction import theory

PI = np.array([0.2, 0.3, 0.5])
TAUS = (0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 5.0)


def distributions(k: int) -> dict[str, np.ndarray]:
    slope = np.exp(-0.7 * np.arange(k))
    return {"equal": np.full(k, 1 / k), "steep": slope / slope.sum()}


def bounds() -> None:
    head = ("tau", "KL", "main text", "supplement", "corrected", "without x_min", "tightened")
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for tau in TAUS:
        log_x_min, kl = theory.draws(PI, tau, 200_000).min(), theory.divergence(PI, tau)
        pairs = (
            theory.printed_bounds(3, tau, log_x_min), theory.supplement_bounds(3, tau, log_x_min),
            theory.corrected_bounds(PI, tau, log_x_min), theory.free_bounds(PI, tau), theory.tight_bounds(PI, tau),
        )  # fmt: skip
        shown = " | ".join(f"{b.lower:.2f} to {b.upper:.2f}" for b in pairs)
        print(f"| {tau:g} | {kl.value:.3f} ± {kl.error:.3f} | {shown} |")


def many() -> None:
    head = ("K", "pi", "tau", "KL", "supplement's upper", "without x_min", "tightened")
    print("\n| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for k in (2, 5, 10, 20, 50):
        for name, pi in distributions(k).items():
            for tau in (0.1, 1.0, 5.0):
                kl = theory.divergence(pi, tau)
                free, tight = theory.free_bounds(pi, tau), theory.tight_bounds(pi, tau)
                printed = theory.supplement_bounds(k, tau, theory.draws(pi, tau, 200_000).min()).upper
                print(f"| {k} | {name} | {tau:g} | {kl.value:.2f} ± {kl.error:.2f} | {printed:.0f} | "
                      f"{free.lower:.2f} to {free.upper:.2f} | {tight.lower:.2f} to {tight.upper:.2f} |")  # fmt: skip


def gradient() -> None:
    head = ("tau", "1/(16 tau^2)", *(f"{what}, {where}" for where in ("on the diagonal", "off it")
                                     for what in ("largest variance", "bound", "limit for low tau")))  # fmt: skip
    print("\n| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    on, product = np.eye(3, dtype=bool), np.outer(PI, PI)
    for tau in (0.02, 0.05, *TAUS):
        variance, limits = theory.gradient_moments(PI, tau, 1_000_000).variance, theory.gradient_limits(3, tau)
        asymptotes = (PI * (1 - PI)).max() / (6 * tau), product[~on].max() / (6 * tau)
        cells = [value for part, asymptote in zip((on, ~on), asymptotes, strict=True)
                 for value in (variance[part].max(), limits[part].max(), asymptote)]  # fmt: skip
        print("| " + " | ".join(f"{value:.4g}" for value in (tau, theory.gradient_limit(tau), *cells)) + " |")


def category() -> None:
    g = np.array([2.0, 0.0, -1.0])
    nu, rate = theory.tilt(PI, g), theory.tilt_rate(PI, g)
    print(f"\nnu = {nu.round(4).tolist()}, rate {rate:.4f}")
    print("\n| tau | argmax of the guided distribution | TV | bound | rate x tau |")
    print("|---|---|---|---|---|")
    for tau in (0.02, 0.1, 0.3, 0.5, 1.0, 5.0):
        argmax, tv = theory.guided_argmax(PI, g, tau, 1_000_000), theory.tilt_distance(PI, g, tau, 1_000_000)
        shown = ", ".join(f"{share:.3f}" for share in argmax)
        print(f"| {tau:g} | {shown} | {tv.value:.4f} ± {tv.error:.4f} | {theory.tilt_bound(PI, g, tau):.3f} | "
              f"{rate * tau:.4f} |")  # fmt: skip


if __name__ == "__main__":
    bounds()
    many()
    gradient()
    category()
