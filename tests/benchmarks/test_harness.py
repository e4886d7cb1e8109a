"""Statistics on fake engines and a fake clock."""

import pytest

from benchmarks import harness


class Clock:
    """A clock that only engines and sleeps move."""

    def __init__(self):
        self.now = 0.0
        self.log = []

    def engine(self, name, times):
        """Make an engine whose n-th call takes times[n] seconds, the last one for ever."""
        calls = iter(range(10**6))

        def call():
            self.log.append(name)
            self.now += times[min(next(calls), len(times) - 1)]

        return call

    def sleep(self, seconds):
        self.log.append(seconds)
        self.now += seconds

    def compare(self, engines, **options):
        return harness.compare(engines, timer=lambda: self.now, sleep=self.sleep, **options)


def test_engines_are_interleaved_with_a_sleep_and_an_untimed_call_before_each():
    clock = Clock()
    engines = {"a": clock.engine("a", [1.0]), "b": clock.engine("b", [2.0])}
    clock.compare(engines, rounds=2, warmup=1, min_time_s=2.0, settle_s=0.5)
    turn_a, turn_b = [0.5, "a", "a", "a"], [0.5, "b", "b"]
    assert clock.log == ["a", "b", *turn_a, *turn_b, *turn_a, *turn_b]


def test_warmup_and_the_call_after_a_sleep_are_not_timed():
    clock = Clock()
    engine = clock.engine("a", [100.0, 50.0, 1.0])
    result = clock.compare({"a": engine}, rounds=1, warmup=1, min_time_s=0.0)
    assert result.seconds == {"a": (1.0,)}


def test_a_round_counts_the_median_call():
    clock = Clock()
    engine = clock.engine("a", [9.0, 1.0, 8.0, 2.0])
    result = clock.compare({"a": engine}, rounds=1, warmup=0, min_time_s=10.5)
    # Timed: 1, 8, 2, and the total passes 10.5 at the third.
    assert result.seconds["a"] == (2.0,)


def test_percentiles_and_ratios_by_hand():
    result = harness.Result({"a": (1.0, 2.0, 30.0), "b": (2.0, 8.0, 3.0)})
    assert result.median("a") == 2.0
    assert result.median("b") == 3.0
    assert result.p10("a") == pytest.approx(1.2)
    assert result.p90("a") == pytest.approx(24.4)
    # Per round 0.5, 0.25, 10: not the ratio of the medians, 0.667.
    assert result.ratio("a", "b") == 0.5
    assert result.ratios() == {("a", "b"): 0.5, ("b", "a"): 2.0}


@pytest.mark.parametrize(
    ("engines", "rounds", "message"),
    [({}, 1, "at least one engine"), ({"a": int}, 0, "rounds is 0")],
)
def test_compare_refuses(engines, rounds, message):
    with pytest.raises(ValueError, match=message):
        harness.compare(engines, rounds=rounds)


def test_geometric_mean():
    assert harness.geometric_mean([0.5, 2.0, 8.0]) == pytest.approx(2.0)
