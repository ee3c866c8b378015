from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policy import windows
from policy.windows import Day, Kind, Window
from tests.effort import many

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = Window(type=Kind.ALLOW, start="22:00", end="06:00", time_zone="Europe/Berlin")
WORKDAY = (Day.MONDAY, Day.TUESDAY, Day.WEDNESDAY, Day.THURSDAY, Day.FRIDAY)
FRIDAY_NIGHT = Window(type=Kind.ALLOW, days=(Day.FRIDAY,), start="22:00", end="06:00", time_zone="Europe/Berlin")
OFFICE = Window(type=Kind.DENY, days=WORKDAY, start="08:00", end="18:00", time_zone="Europe/Berlin")


def berlin(text: str, *, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold)


@pytest.mark.parametrize(
    ("given_windows", "now", "expected"),
    [
        pytest.param((), "2026-01-07T12:00", True, id="no windows: always"),
        pytest.param((NIGHT,), "2026-01-07T21:59:59", False, id="before"),
        pytest.param((NIGHT,), "2026-01-07T22:00", True, id="first instant"),
        pytest.param((NIGHT,), "2026-01-08T05:59:59", True, id="after midnight"),
        pytest.param((NIGHT,), "2026-01-08T06:00", False, id="end is outside"),
        pytest.param((FRIDAY_NIGHT,), "2026-01-09T23:00", True, id="Friday evening"),
        pytest.param((FRIDAY_NIGHT,), "2026-01-10T05:00", True, id="Saturday morning belongs to Friday"),
        pytest.param((FRIDAY_NIGHT,), "2026-01-09T05:00", False, id="Friday morning belongs to Thursday"),
        pytest.param((OFFICE,), "2026-01-07T12:00", False, id="deny"),
        pytest.param((OFFICE,), "2026-01-10T12:00", True, id="deny not at the weekend"),
        pytest.param((NIGHT, OFFICE), "2026-01-07T19:00", False, id="neither denied nor allowed"),
        pytest.param((NIGHT, FRIDAY_NIGHT), "2026-01-07T23:00", True, id="one allow is enough"),
        pytest.param(
            (NIGHT, Window(type=Kind.DENY)), "2026-01-07T23:00", False, id="deny wins over allow"
        ),
    ],
)  # fmt: skip
def test_is_open(given_windows: tuple[Window, ...], now: str, expected: bool) -> None:
    assert windows.is_open(given_windows, berlin(now).astimezone(UTC)) is expected


# On 2026-03-29 Berlin's clocks jump from 02:00 to 03:00, on 2026-10-25 from 03:00 back to 02:00.
SKIPPED = Window(type=Kind.ALLOW, start="02:15", end="02:45", time_zone="Europe/Berlin")


@pytest.mark.parametrize(
    ("given_windows", "now", "expected"),
    [
        pytest.param((NIGHT,), berlin("2026-01-07T12:00"), berlin("2026-01-07T22:00"), id="opens tonight"),
        pytest.param((NIGHT,), berlin("2026-01-07T22:00"), berlin("2026-01-08T06:00"), id="closes tomorrow"),
        pytest.param((FRIDAY_NIGHT,), berlin("2026-01-10T06:00"), berlin("2026-01-16T22:00"), id="next week"),
        pytest.param((), berlin("2026-01-07T12:00"), None, id="no windows: never"),
        pytest.param((Window(type=Kind.DENY),), berlin("2026-01-07T12:00"), None, id="always denied: never"),
        pytest.param((Window(type=Kind.ALLOW),), berlin("2026-01-07T12:00"), None, id="midnight is no change"),
        pytest.param((NIGHT,), berlin("2026-03-28T23:00"), berlin("2026-03-29T06:00"), id="short night"),
        pytest.param((NIGHT,), berlin("2026-10-24T23:00"), berlin("2026-10-25T06:00"), id="long night"),
        pytest.param((SKIPPED,), berlin("2026-03-28T12:00"), berlin("2026-03-30T02:15"), id="skipped half hour"),
        pytest.param((SKIPPED,), berlin("2026-10-25T02:50"), berlin("2026-10-25T02:15", fold=1), id="twice"),
        pytest.param(
            (Window(type=Kind.ALLOW, days=(Day.SUNDAY,), start="02:00", end="03:00", time_zone="Europe/Berlin"),),
            berlin("2026-03-28T12:00"),
            berlin("2026-04-05T02:00"),
            id="a weekly window that is skipped once",
        ),
        pytest.param(
            (Window(type=Kind.ALLOW, start="01:00", end="02:30", time_zone="Europe/Berlin"),),
            berlin("2026-03-29T01:30"),
            berlin("2026-03-29T03:00"),
            id="ends with the jump",
        ),
    ],
)
def test_next_change(given_windows: tuple[Window, ...], now: datetime, expected: datetime | None) -> None:
    found = windows.next_change(given_windows, now.astimezone(UTC))
    assert found == (None if expected is None else expected.astimezone(UTC))


ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia")
TIMES = st.builds("{:02d}:{:02d}".format, st.integers(0, 23), st.sampled_from((0, 15, 30, 59)))
WINDOWS = st.builds(
    lambda kind, days, times, zone: Window(type=kind, days=tuple(days), start=times[0], end=times[1], time_zone=zone),
    st.sampled_from(Kind),
    st.lists(st.sampled_from(Day), min_size=1, max_size=7, unique=True),
    st.tuples(TIMES, TIMES).filter(lambda pair: pair[0] != pair[1]),
    st.sampled_from(ZONES),
)
# Around the change of clocks in both hemispheres and at an ordinary time.
INSTANTS = st.sampled_from(
    [datetime(2026, *day, tzinfo=UTC) for day in ((3, 7), (3, 28), (4, 4), (6, 10), (10, 3), (10, 24), (10, 31))]
).flatmap(lambda start: st.integers(0, 3 * 86_400).map(lambda seconds: start + timedelta(seconds=seconds)))


@settings(max_examples=many(60), deadline=None)
@given(st.lists(WINDOWS, min_size=1, max_size=3), INSTANTS)
def test_next_change_is_the_first_change(some: list[Window], now: datetime) -> None:
    current = windows.is_open(some, now)
    change = windows.next_change(some, now)
    if change is not None:
        assert change > now
        assert windows.is_open(some, change) is not current
        assert windows.is_open(some, change - timedelta(seconds=1)) is current or change - now < timedelta(seconds=1)
    until = min(change or now + timedelta(days=2), now + timedelta(days=2))
    minute = now
    while minute < until:
        assert windows.is_open(some, minute) is current
        minute += timedelta(minutes=5)


@pytest.mark.parametrize(
    ("name", "known"),
    [("Europe/Berlin", True), ("UTC", True), ("Europe/Berln", False), ("Europe", False), ("", False),
    ("../../etc/passwd", False), ("/etc/passwd", False), ("a\0b", False)],
    ids=repr,
)  # fmt: skip
def test_zone(name: str, known: bool) -> None:
    assert windows.is_zone(name) is known


@pytest.mark.parametrize(
    ("text", "valid"),
    [("00:00", True), ("23:59", True), ("24:00", True), ("24:01", False), ("7:00", False), ("07:60",
    False), ("0700", False), ("07:00:00", False)],
    ids=repr,
)  # fmt: skip
def test_time_of_day(text: str, valid: bool) -> None:
    assert windows.is_time(text) is valid


def deny(start: str = "00:00", end: str = "24:00", zone: str = "UTC", days: tuple[Day, ...] = tuple(Day)) -> Window:
    return Window(type=Kind.DENY, days=days, start=start, end=end, time_zone=zone)


@pytest.mark.parametrize(
    ("some", "ever"),
    [
        pytest.param((), True, id="no windows"),
        pytest.param((deny(),), False, id="the whole week"),
        pytest.param((deny("22:00", "06:00"), deny("06:00", "22:00")), False, id="over midnight"),
        pytest.param((deny("22:00", "06:00"), deny("06:00", "21:59")), True, id="one minute left"),
        pytest.param((deny(days=(Day.SUNDAY,)),), True, id="one day"),
        pytest.param(
            (deny("22:00", "06:00", days=(Day.SUNDAY,)), deny(days=tuple(Day)[1:]), deny("06:00", "24:00")),
            False,
            id="the night from Sunday to Monday",
        ),
        pytest.param((deny("00:00", "12:00"), deny("13:00", "01:00", "Etc/GMT-1")), False, id="another zone"),
        pytest.param(
            (deny("00:00", "12:00"), deny("12:00", "24:00", "Europe/London")), True, id="open in summer only"
        ),
        pytest.param(
            (deny("12:00", "24:00", "America/New_York"), deny("09:00", "21:00", "America/Los_Angeles"),
             deny("00:00", "12:00", "America/New_York")),
            False,
            id="two zones that change at different hours, but one of them closed all day",
        ),
        pytest.param(
            (deny("03:00", "24:00", "America/New_York"), deny("00:00", "00:01", "America/Los_Angeles"),
             deny("00:00", "02:59", "America/New_York"), deny("23:50", "24:00", "America/Los_Angeles")),
            True,
            id="open for some minutes in the hours between the changes of two zones",
        ),
        pytest.param((*(deny(zone=zone) for zone in ZONES),), False, id="many zones"),
    ],
)  # fmt: skip
def test_ever_open(some: tuple[Window, ...], ever: bool) -> None:
    assert windows.ever_open(some) is ever


@settings(max_examples=many(30), deadline=None)
@given(st.lists(WINDOWS, min_size=1, max_size=3), INSTANTS)
def test_what_is_open_now_is_ever_open(some: list[Window], now: datetime) -> None:
    assert windows.ever_open(some) or not windows.is_open(some, now)


@settings(max_examples=many(20), deadline=None)
@given(st.lists(WINDOWS, min_size=1, max_size=3))
def test_what_is_ever_open_is_open_at_some_minute_of_the_week_in_one_zone(some: list[Window]) -> None:
    alike = [Window(type=it.type, days=it.days, start=it.start, end=it.end) for it in some]
    begin = datetime(2026, 6, 1, tzinfo=UTC)
    minutes = (begin + timedelta(minutes=n) for n in range(7 * 24 * 60))
    assert windows.ever_open(alike) is any(windows.is_open(alike, minute) for minute in minutes)
