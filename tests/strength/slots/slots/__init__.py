"""Free time between appointments. Times are minutes of a day."""
