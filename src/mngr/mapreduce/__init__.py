"""Map-reduce on agents: tasks, each done by an agent of its own, watched, retried, collected and checked.

Everything is in a ledger from which a killed run goes on. What the tasks are is a recipe's business.
"""
