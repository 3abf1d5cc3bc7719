"""What can go wrong, said once: a message, a hint and an exit code. Imports nothing of ours."""

DONE = 0
FAILED = 1
USAGE = 2
PARTIAL = 3
TIMED_OUT = 4
UNDECIDED = 5
UNREACHED = 6
BLOCKED = 7
BUG = 70
INTERRUPTED = 130


class MngrError(Exception):
    """An error a person can act on. `details` is another program's own output, shown indented and unchanged."""

    exit_code = FAILED

    def __init__(self, message: str, *, hint: str = "", details: str = "", exit_code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details.strip("\n")
        if exit_code is not None:
            self.exit_code = exit_code

    def explained(self) -> str:
        """The message, with the details and the hint indented below it: for a warning."""
        more = [*self.details.split("\n"), f"hint: {self.hint}" if self.hint else ""]
        return "\n".join([self.message, *(f"  {line}" for line in more if line)])

    def as_json(self) -> dict[str, str]:
        return {"error": self.message, "hint": self.hint}


class UsageError(MngrError):
    """Invalid command line or settings."""

    exit_code = USAGE


class NotFoundError(MngrError):
    """A name that should exist does not."""


class TimedOut(MngrError):
    """A deadline passed before the work was done."""

    exit_code = TIMED_OUT


class Undecided(MngrError):
    """A decision is needed and nobody can be asked."""

    exit_code = UNDECIDED
