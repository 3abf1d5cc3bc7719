"""Who wants water today."""

from mngr.e2e import E2eSession, expect


def test_due_names_the_thirsty(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Everybody who wants water today, or is late
        sprout due
    """)
    e2e.run("sprout add Fern --every 3")
    e2e.run("sprout add Basil --every 1")
    e2e.run("sprout add Cactus --every 14")
    e2e.run("sprout water Fern Basil Cactus --on 2026-05-05")
    due = e2e.run("sprout due")
    expect(due).to_succeed()
    expect(due.stdout).to_equal("Basil: 2 days late\nFern: today\n")


def test_due_as_json(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # The same for a script
        sprout due --json
    """)
    e2e.run("sprout add Fern --every 3 --room kitchen")
    due = e2e.run("sprout due --json", comment="it never had water")
    expect(due).to_succeed()
    expect(due.stdout).to_match_json(
        {"today": "2026-05-08", "due": [{"name": "Fern", "room": "kitchen", "every": 3, "days_left": 0}]}
    )
