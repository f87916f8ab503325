"""Sample size per arm for comparing two proportions or two means (two-sided test, normal approximation)."""

from __future__ import annotations

import argparse
import math
import sys
from statistics import NormalDist


def for_proportions(base: float, effect: float, alpha: float, power: float) -> int:
    """Units per arm to detect base against base + effect (absolute)."""
    other = base + effect
    if not (0 < base < 1 and 0 < other < 1) or effect == 0:
        raise ValueError("base and base + effect must lie between 0 and 1, and the effect must not be 0")
    mean = (base + other) / 2
    za, zb = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(power)
    root = za * math.sqrt(2 * mean * (1 - mean)) + zb * math.sqrt(base * (1 - base) + other * (1 - other))
    return math.ceil((root / effect) ** 2)


def for_means(deviation: float, effect: float, alpha: float, power: float) -> int:
    """Units per arm to detect a difference of means with a common standard deviation."""
    if deviation <= 0 or effect == 0:
        raise ValueError("the standard deviation must be positive and the effect must not be 0")
    za, zb = NormalDist().inv_cdf(1 - alpha / 2), NormalDist().inv_cdf(power)
    return math.ceil(2 * ((za + zb) * deviation / effect) ** 2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = parser.add_subparsers(dest="kind", required=True)
    proportion = kinds.add_parser("proportion", help="conversion rates, error rates")
    proportion.add_argument("--base", type=float, required=True, help="rate today, for example 0.10")
    mean = kinds.add_parser("mean", help="amounts, durations, scores")
    mean.add_argument("--sd", type=float, required=True, help="standard deviation of the measure")
    for sub in (proportion, mean):
        sub.add_argument("--effect", type=float, required=True, help="smallest absolute difference worth finding")
        sub.add_argument("--alpha", type=float, default=0.05)
        sub.add_argument("--power", type=float, default=0.8)
        sub.add_argument("--arms", type=int, default=2)
    args = parser.parse_args()
    try:
        if args.kind == "proportion":
            size = for_proportions(args.base, args.effect, args.alpha, args.power)
        else:
            size = for_means(args.sd, args.effect, args.alpha, args.power)
    except ValueError as error:
        parser.error(str(error))
    print(f"{size} per arm, {size * args.arms} in {args.arms} arms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
