"""Tell a person what is done, step by step, each with its command. Silent in other formats and when quiet."""

from mngr.cli.output.output import Output


class Narrator:
    """Also keeps the commands, for who wants to repeat them."""

    def __init__(self, out: Output) -> None:
        self.out = out
        self.speaks = out.human and not out.quiet
        self.commands: list[str] = []
        self._begun = False

    def title(self, text: str) -> None:
        self._line(f"\n{text}" if self._begun else text, "bold")
        self._begun = True

    def command(self, text: str, note: str = "") -> None:
        """`note` is for who repeats it, not for who watches."""
        self.commands.append(f"{text}  # {note}" if note else text)
        self._line(f"$ {text}", "dim")

    def say(self, text: str, style: str = "") -> None:
        self._line(f"  {text}", style)

    def show(self, data: bytes) -> None:
        """Another program's output."""
        if self.speaks:
            self.out.foreign(data)

    def _line(self, text: str, style: str = "") -> None:
        if self.speaks:
            self.out.line(text, style)
            self.out.flush()
