"""Our fit and the real kube-scheduler say the same; the long version is `make campaigns`."""

from collections.abc import Iterator

import pytest

from testbed.api import Api
from tests.integration.descheduler import fit_campaign, scheduler_oracle

PAIRS = 12 * len(fit_campaign.KINDS)
SEED = 1


@pytest.fixture
def kube(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A control plane of its own: in the shared one others act on nodes and claims."""
    with scheduler_oracle.scheduler_alone(tmp_path_factory.mktemp("fit") / "bed") as bed:
        yield bed.api()


def test_what_fits_is_what_the_scheduler_binds(kube: Api) -> None:
    answers = [it for found in fit_campaign.run(kube, pairs=PAIRS, seed=SEED) for it in found]
    assert [fit_campaign.told(it) for it in answers if not it.agreed] == []
    seen = {(it.kind, it.bound) for it in answers}
    assert seen == {(kind, bound) for kind in fit_campaign.KINDS for bound in (True, False)}, "one outcome is missing"
