"""A group of commands of which the first is meant where none is named: `dmdelta validate SPEC`."""

import typer
from typer.core import TyperGroup

HELP = ("--help",)


class DefaultCommandGroup(TyperGroup):
    """Its first command needs no name: what is neither a command's name nor --help is that command's arguments."""

    @property
    def default(self) -> str:
        """The name of the command that needs none."""
        return next(iter(self.commands))

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Name the command that is meant."""
        named = args and (args[0] in self.commands or args[0] in HELP)
        return super().parse_args(ctx, args if named else [self.default, *args])
