import os
import socket
import subprocess
import sys
import sysconfig
import time

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, NodeExistsError, NoNodeError, SessionExpiredError
from kazoo.protocol.states import KazooState

from gozkd_testkit import Ensemble, Server, TestkitError


def eventually(check, seconds=10):
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def connected(connect_string):
    client = KazooClient(connect_string, timeout=5)
    client.start()
    return client


def test_servers_share_nothing():
    with Server() as one, Server() as other:
        one.load({"/a/b": "text", "/c": b"\x00\xff"})
        assert one.tree() == {"/": "", "/a": "", "/a/b": "text", "/c": b"\x00\xff"}
        assert other.tree() == {"/": ""}
    with pytest.raises(TestkitError, match="closed"):
        one.tree()


def test_reply_dropped(zookeeper, zookeeper_client):
    fault = zookeeper.drop_reply("create", "/job")
    with pytest.raises(ConnectionLoss):
        zookeeper_client.create("/job", b"1")
    assert fault.wait() and fault.count() == 1
    zookeeper_client.retry(zookeeper_client.get, "/job")
    with pytest.raises(NodeExistsError):  # it was carried out
        zookeeper_client.create("/job", b"1")


def test_error(zookeeper, zookeeper_client):
    zookeeper.fail("get", "NoNode", "/")
    with pytest.raises(NoNodeError):
        zookeeper_client.get("/")
    zookeeper_client.get("/")


@pytest.mark.parametrize("name", ["first", "second"])
def test_each_test_finds_it_empty(zookeeper, zookeeper_client, name):
    assert zookeeper.tree() == {"/": ""}
    zookeeper_client.create("/left", name.encode(), ephemeral=True)
    zookeeper.fail("get", -101, times=-1)
    zookeeper.kill()


def test_time(zookeeper, zookeeper_client):
    states = []
    zookeeper_client.add_listener(states.append)
    other = connected(zookeeper.connect_string)
    other.create("/alive", ephemeral=True)
    session = other.client_id[0]
    zookeeper.advance(3600)  # both are connected
    assert zookeeper_client.exists("/alive")
    zookeeper.expire_session(session)
    eventually(lambda: zookeeper_client.exists("/alive") is None)
    assert KazooState.LOST not in states
    other.stop()
    other.close()


def test_leader_dies(zookeeper_ensemble):
    client = connected(zookeeper_ensemble.connect_string)
    client.create("/a", b"1")
    leader = zookeeper_ensemble.leader()
    leader.kill()
    assert zookeeper_ensemble.leader().number != leader.number
    assert client.retry(client.get, "/a")[0] == b"1"
    leader.start()
    assert leader.status()["serving"]
    client.stop()
    client.close()


def test_partition(zookeeper_ensemble):
    leader = zookeeper_ensemble.leader().number
    others = [m.number for m in zookeeper_ensemble.members if m.number != leader]
    zookeeper_ensemble.partition([leader], others)
    eventually(lambda: zookeeper_ensemble.leader().number in others)
    zookeeper_ensemble.heal()
    zookeeper_ensemble.stop()
    assert all(m.status()["state"] == "down" for m in zookeeper_ensemble.members)
    zookeeper_ensemble.start()
    assert zookeeper_ensemble.leader().status()["serving"]


def test_refusals():
    with Server() as server:
        for wrong in (lambda: server.fail("nothing", -101), lambda: server.reset(77), lambda: Ensemble(0)):
            with pytest.raises(TestkitError):
                wrong()


START_TIMES = """
import statistics, time
from gozkd_testkit import Server
ms = []
for _ in range(51):
    began = time.monotonic()
    server = Server()
    ms.append((time.monotonic() - began) * 1000)
    server.close()
print(f"Python: first server {ms[0]:.0f} ms, next {statistics.median(ms[1:]):.1f} ms")
"""


def test_start_times():  # measured, not judged: the machine may be busy; pytest -rP shows them
    print(subprocess.run([sys.executable, "-c", START_TIMES], check=True, stdout=subprocess.PIPE, text=True).stdout)


def test_command():
    command = os.path.join(sysconfig.get_path("scripts"), "gozkd-testkit")
    program = "import os, sys; sys.exit(7 if os.environ['ZOOKEEPER_CONNECT'] else 1)"
    assert subprocess.run([command, "run", "--", sys.executable, "-c", program]).returncode == 7


def test_ends_with_its_interpreter(tmp_path):
    said = tmp_path / "address"
    program = "import os, sys; from gozkd_testkit import Server; s = Server(); open(sys.argv[1], 'w').write(s.connect_string); os._exit(1)"
    subprocess.run([sys.executable, "-c", program, str(said)])
    host, port = said.read_text().split(":")

    def gone():
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return False
        except OSError:
            return True

    eventually(gone)


def test_fork():
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    Server().close()
    pid = os.fork()
    if pid == 0:
        try:
            with Server() as server:
                os._exit(0 if server.tree() == {"/": ""} else 1)
        finally:
            os._exit(2)
    assert os.waitpid(pid, 0)[1] == 0
    with Server() as server:  # of this process, which the end of the child has not ended
        assert server.tree() == {"/": ""}
