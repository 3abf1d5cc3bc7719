"""Looking back, and at the whole."""

from mngr.e2e import E2eSession, expect


def test_the_report_counts_by_room(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # How many plants, how many thirsty, room by room
        sprout report
    """)
    e2e.run("sprout add Fern --every 3 --room kitchen")
    e2e.run("sprout add Basil --every 1 --room kitchen")
    e2e.run("sprout add Ivy")
    e2e.run("sprout water Basil Ivy")
    report = e2e.run("sprout report")
    expect(report).to_succeed()
    expect(report.stdout).to_equal("kitchen: 2 plants, 1 thirsty\nnowhere: 1 plant, 0 thirsty\n")


def test_the_week_begins_on_monday(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # How often each had water this week, which began on Monday
        sprout report --week
    """)
    e2e.run("sprout add Fern --every 3")
    e2e.run("sprout water Fern --on 2026-05-03", comment="a Sunday: last week")
    e2e.run("sprout water Fern --on 2026-05-04", comment="a Monday")
    e2e.run("sprout water Fern", comment="a Friday, today")
    week = e2e.run("sprout report --week")
    expect(week).to_succeed()
    expect(week.stdout).to_equal("since 2026-05-04\nFern: 2 times\n")
