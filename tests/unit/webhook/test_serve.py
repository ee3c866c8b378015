"""What `serve` refuses before it opens a port. That it serves is shown on the control plane."""

from pathlib import Path

import pytest

from webhook.__main__ import main

FILES = ("--cert=tls.crt", "--key=tls.key")


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        pytest.param(None, "No such file", id="no file"),
        pytest.param(
            "apiVersion: spotshift.dev/v1alpha1\nkind: Policy\nmode: perhaps\n", "mode", id="a mistake in it"
        ),
    ],
)
def test_settings_that_cannot_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: str | None, told: str
) -> None:
    path = tmp_path / "settings.yaml"
    if settings is not None:
        path.write_text(settings)
    assert main(["serve", *FILES, f"--settings={path}"]) == 1
    assert told in capsys.readouterr().err


def test_nowhere_to_log_in(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *FILES, f"--kubeconfig={tmp_path / 'none'}"]) == 1
    assert capsys.readouterr().err.startswith("error: ")


@pytest.mark.parametrize(
    "arguments",
    [(), ("--cert=tls.crt",), (*FILES, "--listen=8443"), (*FILES, "--probes=:99999"), (*FILES, "--grace-seconds=x")],
    ids=["no files", "no key", "no colon", "no such port", "no number"],
)
def test_wrong_usage(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["serve", *arguments])
    assert ended.value.code == 2
    assert "usage" in capsys.readouterr().err
