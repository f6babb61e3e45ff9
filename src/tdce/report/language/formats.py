"""Numbers, dates and money as a locale writes them."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pandas as pd

from tdce.report.language.catalogue import Catalogue

CHANCE_DIGITS = 4  # of a percentage, at most, because scores have six decimals
SCIENTIFIC_FROM = 1e15  # larger numbers are written with a power of ten
PLAIN_PATTERN = "#,##0.##########"
FIRST_DATE, LAST_DATE = 1000_01_01, 9999_12_31  # for dates written as numbers: 20260131
DAY_ZERO = date(1970, 1, 1)
MAX_DAYS = 2_900_000  # since day zero; a number beyond the year 9900 is not a date


def write_number(catalogue: Catalogue, number: float, pattern: str = PLAIN_PATTERN, digits: int = 10) -> str:
    """A number with grouped thousands and without needless decimals, `1,234.5`; `digits`: significant digits."""
    from babel.numbers import format_decimal, format_scientific

    if not math.isfinite(number):
        return str(number)
    whole = float(number).is_integer() and abs(number) < SCIENTIFIC_FROM
    exact = Decimal(int(number)) if whole else Decimal(f"{number:.{digits}g}")
    if abs(number) >= SCIENTIFIC_FROM or (number and abs(number) < 1e-10):
        return format_scientific(exact, locale=catalogue.locale)
    return format_decimal(exact, pattern, locale=catalogue.locale)


def write_year(number: float) -> str:
    """A year, without grouped thousands."""
    return f"{number:.0f}" if number.is_integer() else f"{number:g}"


def write_percent(catalogue: Catalogue, number: float, pattern: str = "share") -> str:
    """A share in percent: 0.125 is `12.5 %`."""
    return write_number(catalogue, number, catalogue.text(pattern))


def write_chance(catalogue: Catalogue, number: float, border: float) -> str:
    """A probability in percent, with enough digits to stay on its side of the threshold: 0.4997 is `49.97 %`, because
    `50 %` would look like a yes."""
    pattern = catalogue.text("rounded_share")
    for digits in range(CHANCE_DIGITS + 1):
        shown = Decimal(f"{100 * number:.{digits}f}")
        if (shown < Decimal(str(100 * border))) == (number < border):
            break
    return write_number(
        catalogue, float(shown) / 100, pattern.replace("0 %", f"0.{'0' * digits} %" if digits else "0 %")
    )


def write_money(catalogue: Catalogue, amount: float, currency: str) -> str:
    """An amount with its currency, without decimals if it is whole: `3,200 €`, `3,200.50 €`."""
    from babel.numbers import format_currency

    pattern, exact = catalogue.text("money"), Decimal(f"{amount:.15g}")
    if exact == exact.to_integral_value():
        pattern = pattern.replace("0.00", "0")
        return format_currency(exact, currency, pattern, locale=catalogue.locale, currency_digits=False)
    return format_currency(exact, currency, pattern, locale=catalogue.locale)


def write_date(catalogue: Catalogue, cell: Any) -> str | None:
    """`31 January 2026`, from a date, a text such as 2026-01-31, the number 20260131, or days since 1970.

    None if the cell is not a date.
    """
    from babel.dates import format_date, format_datetime

    when = _parse_date(cell)
    if when is None:
        return None
    if isinstance(when, datetime) and when.time() != time():
        return format_datetime(when, "long" if when.tzinfo else "medium", locale=catalogue.locale)
    return format_date(when, "long", locale=catalogue.locale)


def _parse_date(cell: Any) -> date | None:
    try:
        if isinstance(cell, pd.Timestamp):
            return cell.to_pydatetime(warn=False)
        if isinstance(cell, date):
            return cell
        if isinstance(cell, str):
            return datetime.fromisoformat(cell.strip())
        number = float(cell)
        if not number.is_integer():
            return None
        if FIRST_DATE <= number <= LAST_DATE:
            return date(int(number) // 10_000, int(number) // 100 % 100, int(number) % 100)
        return DAY_ZERO + timedelta(days=int(number)) if abs(number) < MAX_DAYS else None
    except (ValueError, TypeError, OverflowError):
        return None
