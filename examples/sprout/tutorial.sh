#!/bin/sh
# sprout remembers when your houseplants want water.
# All it knows is in one file, ~/.sprout.json.

# Your plants

# A plant has a name. It may want water more or less often than once a week, and stand in a room.
sprout add Fern --every 3 --room kitchen
sprout list

# One room at a time
sprout add Cactus --every 14 --room study
sprout add Basil --every 1 --room kitchen
sprout list --room kitchen

# A name is taken only once, however it is written: this is refused
sprout add fern

# Gave one away?
sprout remove Cactus

# Water

# Say so when a plant had water
sprout water Fern

# Several at once; if one of the names is wrong, nothing is noted down
sprout water Fern Basil

# Forgot to say so? A cactus that had water on the 1st, and wants it every 10 days, is due on the 11th
sprout water Cactus --on 2026-05-01
sprout due --within 30

# Who is thirsty

# Everybody who wants water today, or is late
sprout due

# The same for a script
sprout due --json

# In the list, the thirsty ones have a star
sprout list

# Looking back

# How many plants, how many thirsty, room by room
sprout report

# How often each had water this week, which began on Monday
sprout report --week

# Moving house

# A table for your spreadsheet, one line per plant
sprout export plants.csv

# And back: plants that you have already stay as they are
sprout import plants.csv

# For the fun of it

# The whole screen: arrows choose, w waters, q leaves
sprout board

# A word of advice
sprout tip
