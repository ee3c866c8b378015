"""What is left of an earlier pod of the same name when it is started anew."""

from pathlib import Path

from testbed import kubelet
from testbed.bed import ControlPlane
from testbed.pods import ACCOUNT_VOLUME, Pod


def test_a_pod_that_is_started_anew_gets_a_token_of_its_own(tmp_path: Path) -> None:
    """Its account may have been deleted and made again meanwhile, and then nobody accepts the old one."""
    bed = ControlPlane(tmp_path, {}, {})
    pod = Pod("web-0", "default", "web", "web", None, {}, ())
    kubelet.lead(bed, pod.name, "https://127.0.0.1:1")
    token = kubelet.folder(bed) / pod.name / "volumes" / ACCOUNT_VOLUME / "token"
    token.parent.mkdir(parents=True)
    token.write_text("of the one before")
    kubelet.remember(bed, pod)
    assert not token.exists()
    assert (kubelet.folder(bed) / pod.name / kubelet.APISERVER).exists(), "where it is led is said before"
    assert kubelet.remembered(bed) == [pod]
