"""The providers by name: those that are built in, those of the settings, those of plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mngr.errors import UsageError
from mngr.names import suggest
from mngr.providers.provider import Provider

if TYPE_CHECKING:
    from mngr.actions.site import Site
    from mngr.config import Settings

LOCAL = "local"
# Providers that need no settings; `[providers.NAME] type = ...` makes another one of the same type.
BUILTIN = ("ssh", "docker", "podman", "modal", "ray")
_COMMAND = "command"


def names(settings: Settings) -> frozenset[str]:
    """Every provider that an address can name."""
    return frozenset({LOCAL, *BUILTIN, *settings.names("providers")})


def find(name: str, near: Site) -> Provider:
    """The provider of this name. Touches nothing."""
    known = names(near.settings)
    if name not in known:
        raise UsageError(f"no provider is called `{name}`", hint=suggest(name, known, "provider"))
    values = {key: found.value for key, found in near.settings.table(("providers", name)).items()}
    kind = str(values.get("type") or (name if name in BUILTIN else _COMMAND if "open" in values else ""))
    if kind == "ssh":
        from mngr.providers.ssh import Ssh

        return Ssh(name, near, values)
    if kind == "modal":
        from mngr.providers.modal.provider import Modal

        return Modal(name, near, values)
    if kind == "ray":
        from mngr.providers.ray.provider import Ray

        return Ray(name, near, values)
    from mngr.providers import command

    if kind in BUILTIN:
        values = {**command.packaged()[kind], **values}
    elif kind != _COMMAND:
        raise UsageError(
            f"provider `{name}` has no known type",
            hint=f"set `providers.{name}.type` to one of {', '.join((*BUILTIN, _COMMAND))}",
        )
    return command.CommandProvider(name, near, values)
