"""Kubernetes quantities as exact integers: milli-units for cpu, whole units for bytes and counts.

The numbers must be the ones the scheduler computes with, so this follows Kubernetes to the letter, also where
that is surprising: it rounds up; a lone sign, point or suffix is zero; binary amounts are capped at the
largest signed 64-bit integer; decimal amounts beyond it wrap or become zero, as they do there. An integration
test compares both parsers.
"""

import re
from typing import Final

INT64_MAX: Final = 2**63 - 1
FORMAT: Final = "a Kubernetes quantity such as 100m, 1.5, 128Mi or 2e3"

_DECIMAL: Final = {
    "n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18,
}  # fmt: skip
_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_QUANTITY = re.compile(r"([+-]?)(0*)([0-9]*)(?:\.([0-9]*))?([KMGTPE]i|[numkMGTPE]?|[eE][+-]?[0-9]+)")

# Common forms need no exponent arithmetic. The digits they may have keep the result within 64 bits:
# 10^15 * 1000 for plain numbers, 10^6 * 2^40 for suffixes.
_PLAIN_DIGITS: Final = 15
_SUFFIXED_DIGITS: Final = 6
_FAST: Final = {
    "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "k": 10**3, "M": 10**6, "G": 10**9,
}  # fmt: skip

_INT64_DIGITS: Final = 18  # decimal digits that always fit; Kubernetes keeps such amounts as 64-bit integers
_NANO: Final = -9  # nothing smaller is kept
_CHUNK: Final = 4000  # Python refuses to read integers of more than 4300 digits in one go
_VANISHED: Final = 80  # 10^80 is a multiple of 2^64, so an amount scaled by it has no low bits left


class InvalidQuantity(ValueError):
    """The text is not a Kubernetes quantity."""

    def __init__(self, text: str) -> None:
        """Keep the text short: it comes from users."""
        super().__init__(f"{text[:80]!r} is not {FORMAT}")


def milli(text: str) -> int:
    """Thousandths, rounded up: what the scheduler counts for cpu."""
    digits, factor = (text[:-1], 1) if text[-1:] == "m" else (text, 1000)
    if digits.isdigit() and len(digits) <= _PLAIN_DIGITS and digits.isascii():
        return int(digits) * factor
    return _scaled(text, -3)


def value(text: str) -> int:
    """Whole units, rounded up: what the scheduler counts for memory, storage and extended resources."""
    if text.isdigit() and len(text) <= _PLAIN_DIGITS and text.isascii():
        return int(text)
    digits, factor = text[:-2], _FAST.get(text[-2:])
    if factor is None:
        digits, factor = text[:-1], _FAST.get(text[-1:])
    if factor is not None and digits.isdigit() and len(digits) <= _SUFFIXED_DIGITS and digits.isascii():
        return int(digits) * factor
    return _scaled(text, 0)


def _scaled(text: str, target: int) -> int:
    """The amount in units of 10^target. Kubernetes has two representations, and they overflow differently."""
    found = _QUANTITY.fullmatch(text)
    if found is None or text == "":
        raise InvalidQuantity(text)
    sign, zeros, whole, fraction, suffix = found.groups(default="")
    digits = (whole or "0") + fraction
    binary = _BINARY.get(suffix)
    exponent = 0 if binary is not None else _decimal_exponent(text, suffix)
    scale = _int32(exponent - len(fraction))
    if _is_small(whole or "0", fraction, binary) and scale >= _NANO:
        amount = _integer(digits) << (binary or 0)
        return _from_small(-amount if sign == "-" else amount, scale, target)
    if not (zeros or whole or fraction):
        raise InvalidQuantity(text)
    amount = _integer(digits) << (binary or 0)
    places = _int32(len(fraction) + _int32(-exponent))
    return _from_large(amount, places, target, negative=sign == "-", capped=binary is not None)


def _decimal_exponent(text: str, suffix: str) -> int:
    if suffix in _DECIMAL:
        return _DECIMAL[suffix]
    exponent = _integer(suffix[1:].lstrip("+-"))
    exponent = -exponent if suffix[1] == "-" else exponent
    if not -INT64_MAX - 1 <= exponent <= INT64_MAX:
        raise InvalidQuantity(text)
    return _int32(exponent)


def _is_small(whole: str, fraction: str, binary: int | None) -> bool:
    if binary is None:
        return len(whole) + len(fraction) <= _INT64_DIGITS
    return not fraction and len(whole) + binary * 3 // 10 <= 14


def _from_small(amount: int, scale: int, target: int) -> int:
    """Rounds away from zero. Overflow by 1, 2, 3, 6 or 9 places wraps, by others gives zero."""
    if scale < target:
        divisor: int = 10 ** (target - scale)
        rounded = -(-abs(amount) // divisor)
        return -rounded if amount < 0 else rounded
    places = _int32(scale - target)
    if places <= 0 or amount == 0:
        return amount
    if places in {1, 2, 3, 6, 9}:
        return _int64(amount * 10**places)
    product: int = amount * 10**places if places <= _INT64_DIGITS else INT64_MAX + 1
    return product if abs(product) <= INT64_MAX else 0


def _from_large(amount: int, places: int, target: int, *, negative: bool, capped: bool) -> int:
    """Arbitrary precision: what is not zero is at least one nano, and then counted in nanos."""
    if amount == 0:
        return 0
    shift = -_NANO - places
    if shift > _VANISHED:
        return 0
    nanos = amount * 10**shift if shift >= 0 else _divide_up(amount, -shift)
    if capped and nanos > INT64_MAX * 10**9:
        largest: int = INT64_MAX * 10**-target
        return _int64(-largest if negative else largest)
    return _units(-nanos if negative else nanos, 10 ** (-_NANO + target))


def _divide_up(amount: int, places: int) -> int:
    # 4 bits hold more than one decimal digit, so a longer divisor than this leaves only the rounding.
    return 1 if places > amount.bit_length() else -(-amount // 10**places)


def _units(nanos: int, divisor: int) -> int:
    if nanos >= INT64_MAX:
        return _int64(-(-nanos // divisor))
    low = _int64(nanos)
    quotient = abs(low) // divisor
    return (-quotient if low < 0 else quotient) + (1 if low % divisor else 0)


def _integer(digits: str) -> int:
    total = 0
    for start in range(0, len(digits), _CHUNK):
        chunk = digits[start : start + _CHUNK]
        total = total * 10 ** len(chunk) + int(chunk)
    return total


def _int32(number: int) -> int:
    return (number + 2**31) % 2**32 - 2**31


def _int64(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63
