"""Measuring: run a project's tests at a commit in a fresh copy, and read what came of each."""
