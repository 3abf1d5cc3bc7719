"""What answers cost and how they add up, without an agent."""

import sys
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mngr.actions import prices, usage
from mngr.actions.prices import Price, Prices
from mngr.actions.usage import Totals, UsageLine
from mngr.agent.record import seconds_of, timestamp
from mngr.programs.driver import ModelUsage
from mngr.settings import layers as config
from mngr.settings import schema as settings_schema
from mngr.transfer import usage as usage_report
from tests.support.records import make_record

AT = "2026-05-01T12:00:00Z"


def known(**models: dict[str, float]) -> Prices:
    tree = {"prices": {name.replace("_", "-"): table for name, table in models.items()}}
    return Prices(config.Settings([settings_schema.read_layer(tree, "test")]))


def test_a_cost_that_the_program_told_wins_over_every_price() -> None:
    own = known(m={"input": 1e6})
    assert own.cost(ModelUsage(AT, "m", input_tokens=1, cost_usd=0.25)) == 0.25
    assert own.cost(ModelUsage(AT, "claude-sonnet-4-5", input_tokens=1, cost_usd=0.0)) == 0.0


def test_a_price_of_the_settings_wins_over_a_published_one() -> None:
    own = known(claude_sonnet_4_5={"input": 100, "output": 200, "cache_read": 1, "cache_write": 2})
    spent = ModelUsage(AT, "claude-sonnet-4-5", 1000, 100, 10_000, 5_000)
    assert own.cost(spent) == pytest.approx(0.1 + 0.02 + 0.01 + 0.01)
    assert known().cost(spent) == pytest.approx((1000 * 3 + 100 * 15 + 10_000 * 0.3 + 5_000 * 3.75) / 1e6)


def test_a_price_that_is_given_in_part() -> None:
    spent = ModelUsage(AT, "m", 1_000_000, 0, 1_000_000, 1_000_000)
    assert known(m={"input": 2}).cost(spent) == 6, "a cache costs as much as other input, unless said"
    assert known(m={"input": 2}).cost(spent._replace(output_tokens=1)) is None
    assert known(m={"output": 2}).cost(spent) is None
    assert known(m={"input": 0}).cost(spent) == 0, "0 is a price"


@pytest.mark.parametrize(
    "model", ["", "no-such-model-at-all", "<synthetic>", "x" * 500, "/", "[1m]", "a/b/c", "\udcff"]
)
def test_a_model_that_nobody_knows_has_no_price(model: str) -> None:
    assert known().cost(ModelUsage(AT, model, 5, 5)) is None


@pytest.mark.parametrize(
    "model", ["anthropic/claude-sonnet-4-5", "claude-sonnet-4-5[1m]", "my-proxy/claude-sonnet-4-5"]
)
def test_a_model_is_known_with_its_provider_and_its_variant(model: str) -> None:
    plain = known().cost(ModelUsage(AT, "claude-sonnet-4-5", 1000, 100))
    assert plain and known().cost(ModelUsage(AT, model, 1000, 100)) == plain
    assert known(claude_sonnet_4_5={"input": 1, "output": 1}).cost(ModelUsage(AT, model, 500_000, 500_000)) == 1


MODELS = (
    "claude-opus-4-5",
    "claude-sonnet-4-5",
    "gpt-5",
    "gpt-5.4",
    "gemini-2.5-pro",
    "gemini-3-pro-preview",
    "deepseek-chat",
)
TOKENS = st.integers(0, 400_000)


@given(st.sampled_from(MODELS), TOKENS, TOKENS, TOKENS, TOKENS)
def test_without_a_price_of_ones_own_the_published_one_holds(model: str, a: int, b: int, c: int, d: int) -> None:
    from genai_prices import Usage, calc_price

    used = Usage(input_tokens=a + c + d, output_tokens=b, cache_read_tokens=c, cache_write_tokens=d)
    at = datetime.fromtimestamp(seconds_of(AT), UTC)
    exact = float(calc_price(used, model, genai_request_timestamp=at).total_price)
    assert known().cost(ModelUsage(AT, model, a, b, c, d)) == pytest.approx(exact, rel=1e-9, abs=1e-12)


def test_a_long_prompt_costs_what_long_prompts_cost() -> None:
    short, long = (known().cost(ModelUsage(AT, "claude-sonnet-4-5", tokens)) for tokens in (199_999, 200_001))
    assert short and long and long > 1.9 * short


def test_an_answer_without_tokens_costs_nothing_whoever_gave_it() -> None:
    assert known().cost(ModelUsage(AT, "<synthetic>")) == 0.0
    assert known().cost(ModelUsage(AT, "<synthetic>", output_tokens=1)) is None


def test_a_time_that_makes_no_sense_is_no_obstacle() -> None:
    assert known().cost(ModelUsage("yesterday", "gpt-5", 1_000_000, 0)) == pytest.approx(1.25)


def test_the_package_with_prices_is_loaded_only_for_a_price_and_starts_no_thread() -> None:
    program = (
        "import sys, threading\n"
        "from mngr.settings import layers as config, schema as settings_schema\n"
        "from mngr.actions import prices, usage\n"
        "from mngr.programs.driver import ModelUsage\n"
        "own = prices.Prices(config.Settings([settings_schema.read_layer({'prices': {'m': {'input': 1}}}, 'test')]))\n"
        "own.cost(ModelUsage('', 'm', 5)), own.cost(ModelUsage('', 'x', cost_usd=1.0)), own.cost(ModelUsage('', ''))\n"
        "assert 'genai_prices' not in sys.modules\n"
        "def forbidden(event, args):\n"
        "    assert not event.startswith('socket.'), event\n"
        "sys.addaudithook(forbidden)\n"
        "assert own.cost(ModelUsage('', 'gpt-5', 5)) > 0\n"
        "assert 'genai_prices' in sys.modules and threading.active_count() == 1\n"
    )
    from mngr.system import process

    done = process.run([sys.executable, "-c", program], timeout=60)
    assert done.ok, done.error_text


def test_totals_know_what_is_not_known() -> None:
    priced, unpriced = Totals(1, 10, 5, 3, 2, 0.5), Totals(1, 1, 1, 1, 1, None, 1)
    assert priced.plus(unpriced) == Totals(2, 11, 6, 4, 3, 0.5, 1)
    assert unpriced.plus(unpriced) == Totals(2, 2, 2, 2, 2, None, 2)
    assert usage_report.summed([]) == Totals() and Totals().cost_usd == 0.0
    assert Totals().plus(unpriced) == unpriced


COUNTS = st.integers(0, 10**9)
TOTALS = st.one_of(
    st.builds(Totals, st.just(1), COUNTS, COUNTS, COUNTS, COUNTS, st.integers(0, 1000).map(float), st.just(0)),
    st.builds(Totals, st.just(1), COUNTS, COUNTS, COUNTS, COUNTS, st.none(), st.just(1)),
)


@given(st.lists(TOTALS))
def test_every_order_and_grouping_gives_the_same_sum(found: list[Totals]) -> None:
    half = len(found) // 2
    whole = usage_report.summed(found)
    assert usage_report.summed(reversed(found)) == whole
    assert usage_report.summed(found[:half]).plus(usage_report.summed(found[half:])) == whole
    assert (whole.cost_usd is None) == (bool(found) and all(item.cost_usd is None for item in found))


def test_only_answers_since_it_was_made_and_not_in_the_books_are_new() -> None:
    made = seconds_of("2026-05-01T12:00:00.500000Z")
    answers = [
        ModelUsage(at, "m", number)
        for number, at in enumerate(
            ("2026-05-01T12:00:00.499Z", "2026-05-01T12:00:00.500Z", "2026-05-02T00:00:00Z", "at noon", "")
        )
    ]
    assert [spent.input_tokens for spent in usage.new(answers, made, 0.0)] == [1, 2, 3, 4]
    assert [spent.input_tokens for spent in usage.new(answers, made, made + 60)] == [2]
    assert usage.new(answers, made, seconds_of("2026-06-01T00:00:00Z")) == []


def test_answers_of_a_day_and_a_model_are_one_line_and_those_without_a_price_another() -> None:
    record = make_record(name="foo", project="shop", kind="claude", created_at=AT)
    noon = seconds_of(AT)
    answers = [
        ModelUsage(timestamp(noon), "m", 1, cost_usd=1.0),
        ModelUsage(timestamp(noon + 60), "m", 2, cost_usd=2.0),
        ModelUsage(timestamp(noon + 60), "m", 4),
        ModelUsage(timestamp(noon + 3 * 86400), "m", 8, cost_usd=4.0),
        ModelUsage(timestamp(noon), "n", 16, cost_usd=8.0),
    ]
    found = usage.daily(record, answers, known())
    first, last = usage.day_of(noon), usage.day_of(noon + 3 * 86400)
    assert [(used.day, used.model, used.input_tokens, used.cost_usd) for used in found] == [
        (first, "m", 3, 3.0),
        (first, "m", 4, None),
        (first, "n", 16, 8.0),
        (last, "m", 8, 4.0),
    ]
    assert [used.input_tokens for used in usage.daily(record, answers, known(), since=noon + 86400)] == [8]


def test_rows_are_the_dearest_first_and_days_in_order() -> None:
    def used(agent: str, day: str, cost: float | None) -> UsageLine:
        return UsageLine(f"id-{agent}", agent, "p", "t", day, "m", answers=1, input_tokens=1, cost_usd=cost)

    found = [
        used("a", "2", 1.0),
        used("b", "1", 5.0),
        used("c", "3", None),
        used("d", "3", 9.0),
        used("a", "1", 1),
    ]
    known = ("id-a", "id-b", "id-c")
    assert [(row.name, row.id) for row in usage_report.grouped(found, "agent", known)] == [
        ("b", "id-b"),
        ("a", "id-a"),
        ("c", "id-c"),
        ("destroyed agents", None),
    ]
    assert [row.name for row in usage_report.grouped(found, "day", known)] == ["1", "2", "3"]
    assert [row.totals.answers for row in usage_report.grouped(found, "model", known)] == [5]


@given(st.binary())
def test_any_bytes_are_books(data: bytes) -> None:
    found = usage.parse_books(b'{"agent_id": "a", "answers": 1}\n' + data)
    assert found[0] == UsageLine("a", "", "", "", "", "", 1)


def test_books_tell_up_to_when_an_agent_is_in_them() -> None:
    found = usage.parse_books(
        b'{"agent_id": "a", "until": "2026-05-01T00:00:00Z"}\n'
        b'{"agent_id": "a", "answers": 2, "until": "2026-04-01T00:00:00Z"}\n'
        b'{"agent_id": "b", "answers": 1, "until": "whenever"}\n'
    )
    assert usage.booked_until(found) == {"a": seconds_of("2026-05-01T00:00:00Z"), "b": 0.0}
    assert [line.agent_id for line in found if line.answers] == ["a", "b"]


def test_names_of_a_model() -> None:
    assert prices.names("a/b[1m]") == ["a/b[1m]", "a/b", "b"]
    assert prices.names("b") == ["b"]
    assert Price().cost(ModelUsage("", "m")) == 0
