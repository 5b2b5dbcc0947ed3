"""The harness of kazoo.testing, with three members of gozkd in place of three JVMs.

    from gozkd_testkit.kazoo import KazooTestCase

    class MyTest(KazooTestCase):
        def test_something(self):
            self.client.create("/a")
            self.cluster[0].stop()

A test has a client in a subtree of its own. The cluster is shared, and starts again when it is closed,
or when ZOOKEEPER_LOCAL_SESSION_RO or ZOOKEEPER_JAAS_AUTH change, which mean what they mean to kazoo.
"""

from __future__ import annotations

import os
import unittest
import uuid

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.protocol.connection import _CONNECTION_DROP, _SESSION_EXPIRED
from kazoo.protocol.states import KazooState

from gozkd_testkit import Ensemble, Member

__all__ = ["KazooTestCase", "KazooTestHarness"]


class _Server:
    """A member with the names that kazoo gives its servers."""

    def __init__(self, member: Member):
        self._member = member
        self.address = self.secure_address = member.address
        self.client_port = self.secure_client_port = int(member.address.rsplit(":", 1)[1])

    @property
    def running(self) -> bool:
        return self._member.status()["state"] == "running"

    def run(self) -> None:
        if not self.running:
            self._member.start()

    def stop(self) -> None:
        if self.running:
            self._member.stop()

    def get_logs(self, num_lines: int = 100) -> list[str]:
        return []


class _Cluster:
    """An ensemble with the names that kazoo gives its cluster."""

    def __init__(self, **options):
        self._options = options
        self._ensemble: Ensemble | None = None
        self._pem: dict[str, str] | None = None
        self._servers: list[_Server] = []
        self.start()

    def __getitem__(self, number):
        return self._servers[number]

    def __iter__(self):
        return iter(self._servers)

    def start(self) -> None:
        if self._ensemble is None:
            self._ensemble = Ensemble(int(os.environ.get("ZOOKEEPER_CLUSTER_SIZE", 3)), **self._options)
            self._servers = [_Server(m) for m in self._ensemble.members]
        self._ensemble.start()

    def stop(self) -> None:
        self._ensemble.stop()

    def terminate(self) -> None:
        if self._ensemble is not None:
            self._ensemble.close()
        self._ensemble, self._pem, self._servers = None, None, []

    def reset(self) -> None:
        self.terminate()
        self.start()

    def get_logs(self) -> list[str]:
        return [] if self._ensemble is None else [self._ensemble.dump()]

    def get_ssl_client_configuration(self) -> dict[str, bytes]:
        if self._pem is None:
            self._pem = self._ensemble.certificate("client")
        pem = self._pem
        return {f"{name}_{kind}": pem[pick].encode() for name, kind, pick in (("client", "key", "key"), ("client", "cert", "cert"), ("ca", "cert", "ca"))}


_cluster: tuple[dict, _Cluster] | None = None


def _global_cluster() -> _Cluster:
    global _cluster
    local = os.environ.get("ZOOKEEPER_LOCAL_SESSION_RO") == "true"
    options = {
        "tls": True,
        "config": {
            "ReadOnlyMode": True,
            "ReconfigEnabled": True,
            "LocalSessions": local,
            "LocalSessionUpgrades": local,
            "SuperDigest": "super:D/InIHSb7yEEbrWz8b9l71RjZJU=",  # its password is test, as in kazoo
        },
    }
    if os.environ.get("ZOOKEEPER_JAAS_AUTH") == "digest":
        options["users"] = {"super": "super_secret", "jaasuser": "jaas_password"}
    if _cluster is not None and _cluster[0] != options:
        _cluster[1].terminate()
        _cluster = None
    if _cluster is None:
        _cluster = options, _Cluster(**options)
    if not list(_cluster[1]):
        _cluster[1].start()
    return _cluster[1]


class KazooTestHarness(unittest.TestCase):
    """For tests that call setup_zookeeper and teardown_zookeeper themselves."""

    DEFAULT_CLIENT_TIMEOUT = 15

    def __init__(self, *args, **kw):
        super().__init__(*args, **kw)
        self.client: KazooClient | None = None
        self.hosts = ""
        self._clients: list[KazooClient] = []

    @property
    def cluster(self) -> _Cluster:
        return _global_cluster()

    @property
    def servers(self) -> str:
        return ",".join(s.address for s in self.cluster)

    @property
    def secure_servers(self) -> str:
        return ",".join(s.secure_address for s in self.cluster)

    def _open(self, hosts: str, **options) -> KazooClient:
        self._clients.append(KazooClient(hosts, **options))
        return self._clients[-1]

    def _get_nonchroot_client(self) -> KazooClient:
        return self._open(self.servers)

    def _get_client(self, **options) -> KazooClient:
        return self._open(self.hosts, **{"timeout": self.DEFAULT_CLIENT_TIMEOUT, **options})

    def setup_zookeeper(self, **client_options) -> None:
        """Makes self.client, which is connected, with a chroot of its own."""
        self.cluster.start()
        self.hosts = f"{self.servers}/kazootests{uuid.uuid4().hex}"
        self.client = self._get_client(**client_options)
        self.client.start()
        self.client.ensure_path("/")

    def teardown_zookeeper(self) -> None:
        """Closes all clients."""
        while self._clients:
            client = self._clients.pop()
            try:
                client.stop()
            except KazooException:
                pass  # it was not connected
            finally:
                client.close()
        self.client = None

    def lose_connection(self, event_factory) -> None:
        """Breaks the connection of self.client, and waits until it is connected again."""
        self._break(_CONNECTION_DROP, KazooState.SUSPENDED, event_factory)

    def expire_session(self, event_factory) -> None:
        """Lets self.client take its session for expired, and waits until it has another."""
        self._break(_SESSION_EXPIRED, KazooState.LOST, event_factory)

    def _break(self, how, expected, event_factory) -> None:
        broken, back = event_factory(), event_factory()

        def listener(state):
            if state == expected:
                broken.set()
            elif state == KazooState.CONNECTED and broken.is_set():
                back.set()
                return True  # listens no longer
            return None

        self.client.add_listener(listener)
        self.client._call(how, None)
        for event, what, seconds in (broken, "break its connection", 5), (back, "connect again", 15):
            event.wait(seconds)
            if not event.is_set():
                raise AssertionError(f"the client did not {what} within {seconds} s")
        self.client.retry(self.client.get_async, "/")


class KazooTestCase(KazooTestHarness):
    def setUp(self):
        self.setup_zookeeper()

    def tearDown(self):
        self.teardown_zookeeper()

    @classmethod
    def tearDownClass(cls):
        if _cluster is not None:
            _cluster[1].terminate()
