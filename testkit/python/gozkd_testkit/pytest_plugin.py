"""Fixtures for pytest; each test finds its servers as empty as new ones.

zookeeper            a Server for the test; all tests of a worker share it, and it is reset between them
zookeeper_ensemble   an Ensemble of three, of this test alone
zookeeper_client     a connected KazooClient of the fixture zookeeper, if kazoo is installed
"""

import pytest

from gozkd_testkit import Ensemble, Server


@pytest.fixture(scope="session")
def _gozkd_server():
    with Server() as server:
        yield server, server.snapshot()


@pytest.fixture
def zookeeper(_gozkd_server):
    server, empty = _gozkd_server
    yield server
    server.renew(empty)


@pytest.fixture
def zookeeper_ensemble():
    with Ensemble() as ensemble:
        yield ensemble


@pytest.fixture
def zookeeper_client(zookeeper):
    kazoo = pytest.importorskip("kazoo.client")
    client = kazoo.KazooClient(zookeeper.connect_string)
    client.start()
    yield client
    client.stop()
    client.close()
