"""Our quantity parser against Kubernetes' own, on one big generated corpus."""

import json
import random
import subprocess
from pathlib import Path

from policy import quantities

CORPUS_SIZE = 24_000
NEIGHBOURS = 0.6
"""So much of it lies next to a text at a border."""

SUFFIXES = (
    "n", "u", "m", "", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
    "K", "ki", "mi", "i", "e", "ei", "kk", "MiB", "B", "e3", "E3", "e+3", "e-3", "E-9", "e-10", "e18",
    "e19", "e40", "e-40", "e300", "e-300",
)  # fmt: skip

NASTY = (
    "", " ", "0", "00", "+", "-", ".", "+.", "-.", "..", "1.", "1.G", ".5", "+.5", "-.5", "0.5", "5.0",
    "--1", "+-1", "1-", "1+", "1-5", "1+5",
    "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "E", "e", "m", "n", ".m", ".Ki", ".Pi", "+Pi", "0Pi", "00Ei",
    "1.Pi", ".5Pi", "e3", "e-10", "-e-10", ".e-9",
    "1e", "1e+", "1e-", "1E", "1E+0", "1eE5", "1e5e", "1e5m", "1m5", "1 m", "1m ", " 1", "1\t", "0x10",
    "1_000", "1,5", "1k5", "\uff11", "\u0663", "1µ", "1μ",
    "NaN", "inf", "Infinity", "nan", "1e9999999999999999999", "1e4294967296", "1e4294967297",
    "7e-4294967295", "1e2147483647", "12e99", "-1e2147483647",
    "1.5e-2147483648", "1.0e-2147483648", "1e-0000000000000000000000000000005",
    "1e000000000000000000000000000005",
    "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
    "18446744073709551615", "18446744073709551616",
    "9223372036854775.807", "9223372036854775.8071", "9223372036854775807m", "9223372036854775808m",
    "9223372036854775807n", "9223372036.854775807",
    "999999999999999999", "1000000000000000000", "9999999999999999999", "-9999999999999999999", "8Ei",
    "7Ei", "7.9Ei", "8.0Ei", "9Ei", "-8Ei", "-9Ei", "16Ei",
    "9E", "10E", "9.3E", "9.223E", "-10E", "92E", "9300P", "9300000T", "9223372036854775807Ki",
    "1000000000000Gi", "99999999999999Ki", "100000000000000Ki",
    "0.1n", "0.9n", "1.1n", "-0.1n", "-1.1n", "0.0000000001", "0.00000000099", "1.0000000001",
    "-1.0000000001", "0.0001", "0.00011", "1.0001", "-0.0001",
    "0.1Ki", "0.0001Ki", "1.5Ki", "1.1Mi", "1.000000000000000000000000001Gi",
    "0.000000000000000000000000001Gi", "-1.5Ki", "-0.1Ki", "1.5Gi", "0.3Ti",
    "0.000000000000000000", "0.0000000000000000000000", "0e-40", "0.00e-40",
    "000000000000000000000000000000001", "1" + "0" * 30, "1" + "0" * 30 + "m",
    "9" * 100, "9" * 100 + "Mi", "9" * 5000, "0." + "0" * 5000 + "1", "0" * 5000 + "7",
    "1" + "0" * 5000 + "e-5000", "1" + "0" * 4999 + "1e-5000",
    "123456789012345678901234567890e-25", "123456789012345678901234567890e25",
    "-123456789012345678901234567890e-25", "100m", "250m", "1500m", "1.5", "128Mi", "1Gi",
)  # fmt: skip

ALPHABET = "0123456789+-.eEinumkKMGTP"
SURROGATES = range(0xD800, 0xE000)


def test_same_answers_as_kubernetes(built_tools: Path) -> None:
    texts = corpus()
    sent = "".join(f"{text}\n" for text in texts)
    answered = subprocess.run(
        [built_tools / "quantity"], input=sent.encode(), capture_output=True, check=True, timeout=120
    )
    theirs = [_theirs(line) for line in answered.stdout.splitlines()]
    assert len(theirs) == len(texts) >= 20_000
    ours = [_ours(text) for text in texts]
    differing = [(text[:80], a, b) for text, a, b in zip(texts, ours, theirs, strict=True) if a != b]
    assert differing == []
    accepted = sum(answer is not None for answer in theirs)
    assert 0.3 < accepted / len(texts) < 0.95  # the corpus asks both questions


def corpus() -> list[str]:
    texts = dict.fromkeys(NASTY)
    rng = random.Random(20_260_101)
    while len(texts) < CORPUS_SIZE:
        text = _changed(rng, rng.choice(NASTY[:-40])) if rng.random() < NEIGHBOURS else _made_up(rng)
        texts[text if _affordable(text) else _short(rng)] = None
    return list(texts)


def _made_up(rng: random.Random) -> str:
    """Numbers with suffixes and exponents, and what only looks like them or does not even do that."""
    match rng.randrange(5):
        case 0:
            return _number(rng) + rng.choice(SUFFIXES)
        case 1:
            return f"{_number(rng)}{rng.choice('eE')}{rng.randint(-400, 400)}"
        case 2:
            return f"{rng.randint(-(2**70), 2**70)}{rng.choice(SUFFIXES)}"
        case 3:
            return "".join(rng.choices(ALPHABET, k=rng.randint(0, 8)))
        case _:
            return "".join(_character(rng) for _ in range(rng.randint(0, 6)))


def _number(rng: random.Random) -> str:
    whole, part = ("".join(rng.choices("0123456789", k=rng.randint(0, 24))) for _ in range(2))
    return rng.choice(("", "", "", "+", "-")) + whole + rng.choice(("", ".")) + rng.choice((part, ""))


def _character(rng: random.Random) -> str:
    """Any that can stand in a line: of all there are, and as often of the first few."""
    found = rng.choice((rng.randrange(0x80), rng.randrange(0x110000)))
    return "?" if found in SURROGATES or chr(found) in "\r\n" else chr(found)


def _short(rng: random.Random) -> str:
    return rng.choice("123456789") + rng.choice(SUFFIXES) + rng.choice("0123456789 ")


def _changed(rng: random.Random, text: str) -> str:
    """A neighbour of a nasty text: what lies next to a border is where parsers differ."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(0, len(text))
        text = text[:at] + rng.choice("0123456789.+-emKMGiE") + text[at + rng.randint(0, 1) :]
    return text


def _affordable(text: str) -> bool:
    """Kubernetes computes ten to the power of an exponent in full: a long one keeps it busy for hours."""
    _, mark, exponent = text.lower().rpartition("e")
    digits = exponent.lstrip("+-").lstrip("0")
    return mark == "" or len(digits) <= 3 or not digits.isdigit()


def _theirs(line: bytes) -> tuple[int, int] | None:
    answer = json.loads(line)
    return (answer["value"], answer["milli"]) if answer["ok"] else None


def _ours(text: str) -> tuple[int, int] | None:
    try:
        return quantities.value(text), quantities.milli(text)
    except quantities.InvalidQuantity:
        return None
