"""The garden on the whole screen."""

from mngr.e2e import E2eSession, expect


def test_the_board_waters_with_a_key(e2e: E2eSession) -> None:
    e2e.write_tutorial_block("""
        # The whole screen: arrows choose, w waters, q leaves
        sprout board
    """)
    e2e.run("sprout add Cactus --every 14 --room study")
    e2e.run("sprout add Fern --every 3 --room kitchen")
    e2e.run("sprout water Cactus")
    board = e2e.spawn("sprout board")
    expect(board).to_show("> Cactus", timeout=60)
    expect(board).to_show("2 plants, 1 thirsty", timeout=1)
    board.press("Down")
    expect(board).to_show("> Fern", timeout=60)
    board.type("w")
    expect(board).to_show("2 plants, 0 thirsty", timeout=60)
    board.type("q")
    assert board.wait_exit(60) == 0
    expect(e2e.run("sprout due").stdout).to_equal("nobody is thirsty\n")
