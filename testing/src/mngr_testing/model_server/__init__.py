"""A scripted model behind the APIs that agent programs speak, so that real agents run without keys and without chance.

with ModelServer() as server:
    ...  # start `claude -p "%% run date"` with server.env("claude")
    server.wait_for(lambda entry: entry.answer == "text", timeout=10)
"""

from mngr_testing.model_server.log import LoggedRequest, UsageTotals
from mngr_testing.model_server.script import Rule, load_rules
from mngr_testing.model_server.server import ModelServer

__all__ = ["LoggedRequest", "ModelServer", "Rule", "UsageTotals", "load_rules"]
