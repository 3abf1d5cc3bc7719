"""How each agent program is pointed at the server: variables and arguments, nothing in its own files."""

from __future__ import annotations

import json

from mngr.errors import MngrError

TOKEN = "scripted"  # any text will do: the server takes every key


def environment(program: str, url: str) -> dict[str, str]:
    """Variables for the program. Where it keeps its files (HOME and the like) is the caller's matter."""
    if program == "claude":
        return {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_AUTH_TOKEN": TOKEN,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
    if program == "codex":
        return {"OPENAI_API_KEY": TOKEN, "OPENAI_BASE_URL": f"{url}/v1"}
    if program == "opencode":
        return {"OPENCODE_CONFIG_CONTENT": json.dumps(_opencode(url)), "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    raise MngrError(f"no way is known to point `{program}` at the model server", hint="known: claude, codex, opencode")


def arguments(program: str, url: str, model: str) -> list[str]:
    """Arguments for the program, to stand right behind its name. What tools Codex offers depends on the model."""
    if program == "codex":
        settings = {
            "model": model,
            "model_provider": "scripted",
            "model_providers.scripted.name": "scripted",
            "model_providers.scripted.base_url": f"{url}/v1",
            "model_providers.scripted.env_key": "OPENAI_API_KEY",
            "model_providers.scripted.wire_api": "responses",
        }
        return [word for name, value in settings.items() for word in ("-c", f"{name}={json.dumps(value)}")]
    environment(program, url)
    return []


def _opencode(url: str) -> dict[str, object]:
    return {
        "$schema": "https://opencode.ai/config.json",
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "autoupdate": False,
        "share": "disabled",
        "permission": "allow",
        "provider": {
            "scripted": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Scripted",
                "options": {"baseURL": f"{url}/v1", "apiKey": TOKEN},
                "models": {"scripted": {"name": "Scripted", "tool_call": True}},
            }
        },
    }
