"""What `serve` refuses before it opens a port. That it serves is shown on the control plane."""

from pathlib import Path

import pytest

from extender.__main__ import main


@pytest.mark.parametrize(
    "arguments",
    [(), ("serve", "--cert=tls.crt"), ("serve", "--key=tls.key"), ("serve", "--listen=8080")],
    ids=["no command", "no key", "no certificate", "no colon"],
)
def test_wrong_usage(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_settings_that_cannot_be_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "settings.yaml"
    path.write_text("apiVersion: spotshift.dev/v1alpha1\nkind: Policy\nextender: {metric: {best: 1, worst: 1}}\n")
    assert main(["serve", f"--settings={path}"]) == 1
    assert "extender.metric.worst" in capsys.readouterr().err
