"""Modal's own gRPC services on loopback, with real processes, so that the real `modal` client runs without an account.

with ModalServer() as server:
    ...  # start a program with server.env(), or set these variables and `import modal`
    server.fail("SandboxCreateV2", "RESOURCE_EXHAUSTED", "quota exceeded")

A sandbox is an overlay of a root directory in namespaces of its own, so this needs root and Linux. It shows how the
client is used and what goes over the wire. It does not show Modal's quotas, timing, image builds, GPUs or limits of
CPU, memory and network addresses: it records those and does not enforce them.
"""

from mngr_testing.modal_server.handle import LoggedCall, ModalServer

__all__ = ["LoggedCall", "ModalServer"]
