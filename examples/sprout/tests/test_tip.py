"""Advice, for what it is worth."""

from mngr.e2e import E2eSession, expect


def test_a_tip_is_about_water(e2e: E2eSession) -> None:
    """Flaky on purpose: `sprout tip` takes one of four at random, and only some of them speak of water.

    It is here to see how tools treat a test that passes now and fails the next time. Please leave it as it is.
    """
    e2e.write_tutorial_block("""
        # A word of advice
        sprout tip
    """)
    tip = e2e.run("sprout tip")
    expect(tip).to_succeed()
    expect(tip.stdout).to_contain("water")
