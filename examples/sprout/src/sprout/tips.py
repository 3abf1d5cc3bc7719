"""A word of advice. Chosen at random: the same one every day would be no advice."""

import random

TIPS = (
    "Give water in the morning: leaves dry before the night.",
    "Yellow leaves mean too much water more often than too little.",
    "A plant by the window wants to be turned now and then.",
    "Dust on the leaves is shade: wipe it off.",
)


def tip() -> str:
    return random.choice(TIPS)
