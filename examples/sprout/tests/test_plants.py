"""Plants come, are listed, and go."""

from mngr.e2e import E2eSession, expect


def test_a_plant_is_added_and_listed(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A plant has a name. It may want water more or less often than once a week, and stand in a room.
        sprout add Fern --every 3 --room kitchen
        sprout list
    """)
    added = e2e.run("sprout add Fern --every 3 --room kitchen")
    expect(added).to_succeed()
    expect(added.stdout).to_equal("added Fern: water every 3 days\n")
    expect(e2e.home / ".sprout.json").to_exist()
    expect(e2e.run("sprout list").stdout).to_match(r"Fern +kitchen +every 3 days")


def test_the_list_shows_one_room(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # One room at a time
        sprout add Cactus --every 14 --room study
        sprout add Basil --every 1 --room kitchen
        sprout list --room kitchen
    """)
    e2e.run("sprout add Cactus --every 14 --room study")
    e2e.run("sprout add Basil --every 1 --room kitchen")
    shown = e2e.run("sprout list --room kitchen")
    expect(shown).to_succeed()
    expect(shown.stdout).to_contain("Basil")
    expect(shown.stdout).not_to_contain("Cactus")


def test_a_name_is_taken_only_once(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A name is taken only once, however it is written: this is refused
        sprout add fern
    """)
    e2e.run("sprout add Fern --every 3")
    again = e2e.run("sprout add fern", comment="the same plant, in small letters")
    expect(again).to_have_exit_code(1)
    expect(again.stderr).to_contain("there is a Fern already")
    expect(e2e.run("sprout list").stdout).to_contain("every 3 days")


def test_a_plant_is_removed(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # Gave one away?
        sprout remove Cactus
    """)
    e2e.run("sprout add Cactus")
    e2e.run("sprout add Fern")
    removed = e2e.run("sprout remove Cactus")
    expect(removed).to_succeed()
    expect(removed.stdout).to_equal("removed Cactus\n")
    left = e2e.run("sprout list").stdout
    expect(left).not_to_contain("Cactus")
    expect(left).to_contain("Fern")
    twice = e2e.run("sprout remove Cactus", comment="it is gone already")
    expect(twice).to_have_exit_code(1)
    expect(twice.stderr).to_contain("no plant is called Cactus")


def test_the_list_marks_the_thirsty(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # In the list, the thirsty ones have a star
        sprout list
    """)
    e2e.run("sprout add Fern --every 3")
    e2e.run("sprout add Cactus --every 14")
    e2e.run("sprout water Fern Cactus --on 2026-05-05")
    listed = e2e.run("sprout list", comment="Fern wants water today, Cactus in 11 days")
    expect(listed).to_succeed()
    expect(listed.stdout).to_match(r"(?m)^\* Fern")
    expect(listed.stdout).to_match(r"(?m)^  Cactus")
