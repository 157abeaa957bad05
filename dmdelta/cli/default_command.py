"""A group of commands whose first command is the default: `dmdelta validate SPEC`."""

import typer
from typer.core import TyperGroup

HELP = ("--help",)


class DefaultCommandGroup(TyperGroup):
    """Its first command is the default: arguments that start with neither a command's name nor --help belong to it."""

    @property
    def default(self) -> str:
        """The name of the default command."""
        return next(iter(self.commands))

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Insert the default command's name if none is given."""
        named = args and (args[0] in self.commands or args[0] in HELP)
        return super().parse_args(ctx, args if named else [self.default, *args])
