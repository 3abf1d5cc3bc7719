"""The steps of a measurement, run in a directory as they are in a checkout."""

import subprocess
import sys
from pathlib import Path

from mngr.tmr.measure.measurement import PROBE, Measurement, PluginStep, Pytest, SuiteEnvironment, script

COMMAND = f"{sys.executable} -m pytest -q -p no:cacheprovider"
ENV = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def measured(top: Path, *steps: Pytest | PluginStep, command: str = COMMAND) -> Path:
    """Run these steps in a directory as in a checkout. Where their results are."""
    job, out = top / ".mngr" / "task" / "job", top / ".mngr" / "task" / "artifacts"
    out.mkdir(parents=True)
    job.mkdir()
    (job / "probe").symlink_to(PROBE)
    environment = SuiteEnvironment(command, env=ENV, test_seconds=20)
    for name, data in script(environment, Measurement("x", "HEAD", steps)).items():
        (job / name).write_bytes(data)
    env = {"PATH": "/usr/bin:/bin", "MNGR_ARTIFACTS_DIR": str(out), "HOME": str(top), **ENV}
    subprocess.run(["sh", str(job / "job.sh")], cwd=top, env=env, check=True, timeout=280)
    return out
