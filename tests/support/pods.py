"""A provider by settings, against a stand-in for `kubectl`: the settings are those of `mngr help providers`."""

import shutil
from pathlib import Path

from tests.support.user import User

SETTINGS = """\
[providers.{name}]
type = "command"
open = "kubectl exec -i {{host}} -- sh -c"
open_tty = "kubectl exec -it {{host}} -- sh -c"
create = "kubectl run {{host}} --image={{image}} --labels=mngr={{owner}} --command -- sh -c {{keeper}}"
list = "kubectl get pods -l mngr={{owner}} --no-headers -o custom-columns=N:.metadata.name,S:.status.phase"
destroy = "kubectl delete pod {{host}} --wait=false"
image = "registry.example/agents:1"
"""


class Pods:
    """Gives a user the stand-in and the provider. At the end no pod and none of its processes are left.
    Not `marked`, it lists the pods of everybody."""

    def __init__(self, user: User, name: str = "pods", more: str = "", *, marked: bool = True) -> None:
        self._user = user
        self.place = user.root / "pods"
        self.place.mkdir()
        tools = user.root / "pod-tools"
        tools.mkdir()
        shutil.copy(Path(__file__).with_name("kubectl.py"), tools / "kubectl")
        (tools / "kubectl").chmod(0o755)
        user.env.update(PATH=f"{tools}:{user.env['PATH']}", PODS=str(self.place))
        settings = SETTINGS.format(name=name)
        add_settings(user, (settings if marked else settings.replace("-l mngr={owner} ", "")) + more)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.place.iterdir())

    def delete(self, name: str) -> None:
        self._user.run(["kubectl", "delete", "pod", name]).ok()

    def close(self) -> None:
        for name in self.names():
            self.delete(name)


def add_settings(user: User, text: str) -> None:
    user.host_dir.mkdir(mode=0o700, exist_ok=True)
    with (user.host_dir / "settings.toml").open("a") as file:
        file.write(text)
