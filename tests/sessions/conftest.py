"""Sessions begin where the tutorial's reader is: in a small repository, with `scripted` as what `create` starts."""

import subprocess

from mngr.e2e import E2eSession


def e2e_environment(session: E2eSession) -> None:
    session.write_settings('[commands.create]\ntype = "scripted"\n')
    (session.repo / "shop.py").write_text('print("welcome to the shop")\n')
    for words in (["add", "shop.py"], ["commit", "--quiet", "--message", "Open the shop"]):
        subprocess.run(["git", *words], cwd=session.repo, env=session.env, check=True)
