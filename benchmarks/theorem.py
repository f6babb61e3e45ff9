"""The tables of docs/theory.md: the divergence and its bounds, and the variance of the gradient.

python benchmarks/theorem.py
"""

import numpy as np

from tdce.paper import theory

PI = np.array([0.2, 0.3, 0.5])
TAUS = (0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 5.0)


def laws(k: int) -> dict[str, np.ndarray]:
    slope = np.exp(-0.7 * np.arange(k))
    return {"equal": np.full(k, 1 / k), "steep": slope / slope.sum()}


def bounds() -> None:
    head = ("tau", "KL", "main text", "supplement", "corrected", "without x_min", "tightened")
    print("| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for tau in TAUS:
        log_x_min, found = theory.draws(PI, tau, 200_000).min(), theory.divergence(PI, tau)
        pairs = (
            theory.printed_bounds(3, tau, log_x_min), theory.supplement_bounds(3, tau, log_x_min),
            theory.corrected_bounds(PI, tau, log_x_min), theory.free_bounds(PI, tau), theory.tight_bounds(PI, tau),
        )  # fmt: skip
        shown = " | ".join(f"{b.lower:.2f} to {b.upper:.2f}" for b in pairs)
        print(f"| {tau:g} | {found.value:.3f} ± {found.error:.3f} | {shown} |")


def many() -> None:
    head = ("K", "pi", "tau", "KL", "supplement's upper", "without x_min", "tightened")
    print("\n| " + " | ".join(head) + " |\n" + "|---" * len(head) + "|")
    for k in (2, 5, 10, 20, 50):
        for name, pi in laws(k).items():
            for tau in (0.1, 1.0, 5.0):
                found = theory.divergence(pi, tau)
                free, tight = theory.free_bounds(pi, tau), theory.tight_bounds(pi, tau)
                printed = theory.supplement_bounds(k, tau, theory.draws(pi, tau, 200_000).min()).upper
                print(f"| {k} | {name} | {tau:g} | {found.value:.2f} ± {found.error:.2f} | {printed:.0f} | "
                      f"{free.lower:.2f} to {free.upper:.2f} | {tight.lower:.2f} to {tight.upper:.2f} |")  # fmt: skip


def gradient() -> None:
    print("\n| tau | largest variance | 1/(16 tau^2) | 1/(64 tau^2) | low-tau law |\n|---|---|---|---|---|")
    for tau in (0.02, 0.05, *TAUS):
        found = theory.gradient_moments(PI, tau, 1_000_000)
        limit, law = theory.gradient_limit(tau), (PI * (1 - PI)).max() / (6 * tau)
        print(f"| {tau:g} | {found.variance.max():.4g} | {limit:.4g} | {limit / 4:.4g} | {law:.4g} |")


if __name__ == "__main__":
    bounds()
    many()
    gradient()
