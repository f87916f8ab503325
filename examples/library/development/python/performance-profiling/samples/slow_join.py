"""Join two tables the slow way: looks up each order's customer by scanning a list."""

from __future__ import annotations


def find_customer(customers: list[tuple[int, str]], wanted: int) -> str:
    """The hot spot: a linear search, called once per order."""
    for number, name in customers:
        if number == wanted:
            return name
    return "unknown"


def main() -> None:
    customers = [(number, f"customer {number}") for number in range(1_000)]
    orders = [(order, order * 7919 % 1_100) for order in range(3_000)]
    named = [(order, find_customer(customers, customer)) for order, customer in orders]
    print(f"{sum(name == 'unknown' for _, name in named)} of {len(named)} orders without a customer")


if __name__ == "__main__":
    main()
