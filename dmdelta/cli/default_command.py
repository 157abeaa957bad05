"""A group of commands whose main one needs no name: `dmdelta quality SPEC`, `dmdelta quality release SPEC`."""

from typing import Any

from typer.core import TyperGroup


class DefaultCommand(TyperGroup):
    """Takes what is no name of a command for the arguments of the group's first one."""

    def named(self, words: list[str]) -> list[str]:
        """A command line with the command's name."""
        if not words or words[0] in {*self.commands, "--help"}:
            return words
        return [next(iter(self.commands)), *words]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, self.named(args))
