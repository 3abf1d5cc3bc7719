"""The providers by name: those that are built in, those of the settings, those of plugins."""

from __future__ import annotations

import importlib

from mngr.actions.site import Site
from mngr.errors import UsageError
from mngr.names import suggest
from mngr.providers.provider import Provider
from mngr.settings.layers import Settings

LOCAL = "local"
# Providers that need no settings; `[providers.NAME] type = ...` makes another one of the same type.
BUILTIN = ("ssh", "docker", "podman", "modal", "ray")
_CLASSES = {"ssh": "ssh:Ssh", "modal": "modal.provider:Modal", "ray": "ray.provider:Ray"}
_COMMAND = "command"


def names(settings: Settings) -> frozenset[str]:
    """Every provider that an address can name."""
    return frozenset({LOCAL, *BUILTIN, *settings.names("providers")})


def find(name: str, local: Site) -> Provider:
    """The provider of this name. Touches nothing."""
    known = names(local.settings)
    if name not in known:
        raise UsageError(f"no provider is called `{name}`", hint=suggest(name, known, "provider"))
    values = {key: found.value for key, found in local.settings.table(("providers", name)).items()}
    kind = str(values.get("type") or (name if name in BUILTIN else _COMMAND if "open" in values else ""))
    if kind in _CLASSES:
        module, _, word = _CLASSES[kind].partition(":")
        made: Provider = getattr(importlib.import_module(f"mngr.providers.{module}"), word)(name, local, values)
        return made
    from mngr.providers import command

    if kind in BUILTIN:
        values = {**command.packaged()[kind], **values}
    elif kind != _COMMAND:
        raise UsageError(
            f"provider `{name}` has no known type",
            hint=f"set `providers.{name}.type` to one of {', '.join((*BUILTIN, _COMMAND))}",
        )
    return command.CommandProvider(name, local, values)
