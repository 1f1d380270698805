"""Click commands and groups as this program needs them: loaded late, strict about options, short in errors."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"]}

_GLUED = ("-dt", "-dtf")


class Command(click.Command):
    """A command in which nothing that was typed is passed over in silence.

    Click takes ``-dt2026-11-01`` for ``-d t2026-11-01``, and the last of two ``-dt`` for the only one. The
    first would run a batch without a name, the second another batch than was meant: both are refused.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", SETTINGS)
        super().__init__(*args, **kwargs)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = {name for option in self.params for name in option.opts}
        for arg in args:
            if arg == "--":
                break
            name = arg.partition("=")[0]
            if "-dt" in known and arg.startswith("-dt") and name not in _GLUED:
                raise click.UsageError(f"{arg[:40]!r} is not understood: put a blank after -dt or -dtf", ctx)
        rest = super().parse_args(ctx, args)
        for option in self.params:
            if isinstance(option, Once) and option.name is not None:
                ctx.params[option.name] = option.only(ctx, ctx.params.get(option.name))
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        if not gc.isenabled():
            gc.freeze()
            gc.enable()
        return super().invoke(ctx)


class Once(click.Option):
    """An option that may be given once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["multiple"] = True
        super().__init__(*args, **kwargs)

    def only(self, ctx: click.Context, values: tuple[Any, ...] | None) -> Any:
        """The one value, None without any.

        :param values: None while a shell completes a line that is not whole yet.
        :raises click.UsageError: there are several.
        """
        if values is not None and len(values) > 1:
            raise click.UsageError(f"{self.opts[0]} is given {len(values)} times; give it once", ctx)
        return values[0] if values else None


class Group(click.Group):
    """A group whose commands are imported when they are called; its help imports none of them.

    :param late: command name to (module, help line); the module has the command as ``command``.
    """

    def __init__(self, *args: Any, late: Mapping[str, tuple[str, str]], **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", SETTINGS)
        kwargs.setdefault("no_args_is_help", False)
        super().__init__(*args, **kwargs)
        self._late = late

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - the base's signature
        return list(self._late)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self._late:
            return None
        command: click.Command = import_module(self._late[cmd_name][0]).command
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help() + "\n", err=True)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self._late and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], list(self._late), n=1)
            known = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(self._late)}"
            raise click.UsageError(f"there is no command {args[0][:40]!r}; {known}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._late.items()])
