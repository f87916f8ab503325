"""Size panels, battery, inverter and charge controller of an off-grid system from a list of loads."""

from __future__ import annotations

import argparse
import csv
import math
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Load:
    """One consumer. watts while running, hours per day, surge as a factor at start, current "ac" or "dc"."""

    name: str
    watts: float
    hours: float
    surge: float
    current: str


def read(path: Path) -> list[Load]:
    with path.open(encoding="utf-8-sig", newline="") as stream:
        return [
            Load(
                row["load"], float(row["watts"]), float(row["hours"]), float(row["surge"] or 1), row["current"].strip()
            )
            for row in csv.DictReader(stream)
        ]


def daily_energy(loads: list[Load], inverter_efficiency: float) -> float:
    """Watt-hours a day that the battery has to deliver."""
    return sum(load.watts * load.hours / (inverter_efficiency if load.current == "ac" else 1) for load in loads)


def inverter_power(loads: list[Load]) -> tuple[float, float]:
    """(continuous, surge) watts: all AC loads together; the worst motor starting while the others run."""
    running = [load for load in loads if load.current == "ac"]
    total = sum(load.watts for load in running)
    return total * 1.25, total + max((load.watts * (load.surge - 1) for load in running), default=0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("loads", type=Path, help="CSV: load, watts, hours, surge, current (ac or dc)")
    parser.add_argument("--sun-hours", type=float, required=True, help="peak sun hours of the month that matters")
    parser.add_argument("--autonomy-days", type=float, default=2, help="days without sun")
    parser.add_argument("--performance", type=float, default=0.75, help="performance ratio of the array")
    parser.add_argument("--depth", type=float, default=0.9, help="usable share of the battery")
    parser.add_argument("--volts", type=float, default=24, help="battery voltage")
    parser.add_argument("--panel", type=float, default=430, help="watts of one panel")
    parser.add_argument("--inverter-efficiency", type=float, default=0.9)
    args = parser.parse_args()
    shares = (args.performance, args.depth, args.inverter_efficiency)
    if min(args.sun_hours, args.volts, args.panel, *shares) <= 0 or max(shares) > 1:
        parser.error("sun hours, volts and panel must be positive; shares must lie between 0 and 1")
    loads = read(args.loads)
    energy = daily_energy(loads, args.inverter_efficiency)
    panels = math.ceil(energy / (args.sun_hours * args.performance) / args.panel)
    battery = energy * args.autonomy_days / args.depth
    continuous, surge = inverter_power(loads)
    print(f"energy      {energy:,.0f} Wh a day")
    print(f"panels      {panels} x {args.panel:.0f} W = {panels * args.panel:,.0f} W")
    print(f"battery     {battery:,.0f} Wh = {battery / args.volts:,.0f} Ah at {args.volts:.0f} V")
    print(f"inverter    {continuous:,.0f} W, surge {surge:,.0f} W")
    print(f"controller  {math.ceil(panels * args.panel / args.volts * 1.25)} A")
    return 0


if __name__ == "__main__":
    sys.exit(main())
