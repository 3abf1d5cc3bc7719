"""Why Ray cannot be used, where no cluster is needed to see it."""

from pathlib import Path

from tests.real.test_create import write_settings
from tests.support.user import User


def test_without_the_package_the_error_names_what_to_install(user: User, tmp_path: Path) -> None:
    write_settings(user, '[providers.ray]\naddress = "127.0.0.1:9"\n')
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError('No module named ray', name='ray')\n")
    words = ("create", "foo@.ray", "--no-connect", "--command", "cat")
    text = user.mngr(*words, env={"PYTHONPATH": str(tmp_path)}).failed(1).stderr
    assert "`ray` is not installed" in text and "pip install 'mngr[ray]'" in text
    assert user.mngr(*words, "-s", "cpus=many").failed(2).stderr.startswith("error: invalid amount `many` of `cpus`")
    assert not list((user.host_dir / "hosts" / "ray").glob("*.json"))
