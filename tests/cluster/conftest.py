"""Clusters of several nodes on this machine; only ``make cluster-test`` runs these tests."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("LONGTAKE_CLUSTER"):
        return
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason="needs Ray; run 'make cluster-test'"))


@pytest.fixture(autouse=True)
def no_network() -> None:
    """Nodes of a cluster talk to one another by this machine's own address."""


@pytest.fixture(autouse=True)
def nothing_left_by_test() -> None:
    """Ray leaves handlers of signals and exceptions, paths and variables in the process."""


@pytest.fixture(autouse=True, scope="module")
def nothing_left_by_module() -> None:
    """Ray leaves them when a file ends, too."""


@pytest.fixture(autouse=True, scope="session")
def nothing_left_by_session() -> None:
    """Ray leaves them until the process ends."""


@pytest.fixture(scope="session")
def cluster_environment() -> Iterator[pytest.MonkeyPatch]:
    """What nodes inherit: a token, and where the code of the tests is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
        patch.setenv("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
        folders = [str(ROOT / "src"), str(ROOT / "tests")]
        patch.setenv("PYTHONPATH", os.pathsep.join([*folders, os.environ.get("PYTHONPATH", "")]))
        yield patch


@pytest.fixture(scope="session")
def nodes(cluster_environment):
    """Starts a cluster with so many nodes of one CPU each, beside a head without any."""

    @contextmanager
    def start(count: int):
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster_environment.setenv("RAY_ADDRESS", cluster.address)
        try:
            yield cluster, [cluster.add_node(num_cpus=1) for _ in range(count)]
        finally:
            cluster_environment.delenv("RAY_ADDRESS", raising=False)
            cluster.shutdown()

    return start


@pytest.fixture(scope="module")
def two(nodes):
    """A cluster of two nodes."""
    with nodes(2) as (cluster, _):
        yield cluster
