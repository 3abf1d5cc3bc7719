"""To a spreadsheet, and back."""

from mngr.e2e import E2eSession, expect


def test_export_quotes_a_name_with_a_comma(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A table for your spreadsheet, one line per plant
        sprout export plants.csv
    """)
    e2e.run("sprout add 'Fern, the old one' --room kitchen")
    exported = e2e.run("sprout export plants.csv")
    expect(exported).to_succeed()
    expect(exported.stdout).to_equal("wrote 1 plant to plants.csv\n")
    expect(e2e.cwd / "plants.csv").to_have_content('name,room,every,last\n"Fern, the old one",kitchen,7,\n')


def test_export_leaves_a_missing_room_empty(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # A table for your spreadsheet, one line per plant
        sprout export plants.csv
    """)
    e2e.run("sprout add Ivy --every 5")
    e2e.run("sprout water Ivy")
    expect(e2e.run("sprout export plants.csv")).to_succeed()
    expect(e2e.cwd / "plants.csv").to_have_content("name,room,every,last\nIvy,,5,2026-05-08\n")


def test_import_adds_what_is_new(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # And back: plants that you have already stay as they are
        sprout import plants.csv
    """)
    e2e.run("sprout add Fern --every 3")
    (e2e.cwd / "plants.csv").write_text("name,room,every,last\nfern,,9,\nIvy,hall,5,2026-05-01\n")
    imported = e2e.run("sprout import plants.csv")
    expect(imported).to_succeed()
    expect(imported.stdout).to_equal("imported 1 plant\n")
    listed = e2e.run("sprout list").stdout
    expect(listed).to_match(r"Fern .* every 3 days")
    expect(listed).to_match(r"Ivy +hall +every 5 days")
    (e2e.cwd / "plants.csv").write_text("name,room,every,last\nOak,,often,\n")
    broken = e2e.run("sprout import plants.csv", comment="`often` is no number of days")
    expect(broken).to_have_exit_code(1)
    expect(broken.stderr).to_contain("line 2 of the table cannot be read")
