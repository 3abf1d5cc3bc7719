"""Water is noted down, on the right day, for the right plants."""

from mngr.e2e import E2eSession, expect


def test_watering_a_plant(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Say so when a plant had water
        sprout water Fern
    """)
    e2e.run("sprout add Fern --every 3")
    watered = e2e.run("sprout water Fern")
    expect(watered).to_succeed()
    expect(watered.stdout).to_contain("watered Fern")
    expect(e2e.run("sprout due").stdout).to_equal("nobody is thirsty\n")


def test_watering_several_at_once(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Several at once; if one of the names is wrong, nothing is noted down
        sprout water Fern Basil
    """)
    e2e.run("sprout add Fern")
    e2e.run("sprout add Basil --every 1")
    watered = e2e.run("sprout water Fern Basil")
    expect(watered).to_succeed()
    expect(watered.stdout).to_contain("watered Fern")
    expect(watered.stdout).to_contain("watered Basil")


def test_a_wrong_name_waters_nobody(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Several at once; if one of the names is wrong, nothing is noted down
        sprout water Fern Basil
    """)
    e2e.run("sprout add Fern")
    watered = e2e.run("sprout water Fern Basil", comment="there is no Basil here")
    expect(watered).to_have_exit_code(1)
    expect(watered.stderr).to_contain("no plant is called Basil")
    expect((e2e.home / ".sprout.json").read_text()).to_contain('"waterings": []')


def test_watering_on_an_earlier_day(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Forgot to say so? A cactus that had water on the 1st, and wants it every 10 days, is due on the 11th
        sprout water Cactus --on 2026-05-01
        sprout due --within 30
    """)
    e2e.run("sprout add Cactus --every 10")
    expect(e2e.run("sprout water Cactus --on 2026-05-01")).to_succeed()
    due = e2e.run("sprout due --within 30")
    expect(due).to_succeed()
    expect(due.stdout).to_contain("on 2026-05-10")
    wrong = e2e.run("sprout water Cactus --on yesterday", comment="a day is written 2026-05-01")
    expect(wrong).to_have_exit_code(2)
