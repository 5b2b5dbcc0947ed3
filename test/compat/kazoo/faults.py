"""Does harm to an ensemble of gozkd while kazoo, unchanged, works on it, and prints a line per case.

Usage: faults.py PORTFILE

The port file is that of gozkd-testkit --ensemble 3 --port-file PORTFILE. Lines are "version V" once,
then "ok NAME" or "FAIL NAME why". Exits 1 if a case failed.
"""

import json
import logging
import sys
import time
import traceback
import urllib.request

import kazoo
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import ConnectionLoss, NodeExistsError
from kazoo.retry import KazooRetry

with open(sys.argv[1]) as f:
    PORTS = json.load(f)
WAIT = 20  # seconds until something that should happen counts as missing

CASES = []


def case(f):
    CASES.append(f)
    return f


def ask(method, path, body=None):
    """Asks the endpoint for faults. What was asked for is done when it returns."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(PORTS["faults"] + path, data, method=method)
    with urllib.request.urlopen(request, timeout=WAIT) as answer:
        return json.load(answer)


class Client:
    """A client that notes its states. member: it knows only that one."""

    def __init__(self, member=None):
        hosts = PORTS["client"] if member is None else PORTS["members"][member - 1]["client"]
        self.zk = KazooClient(hosts=hosts, timeout=10, connection_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=0.2))
        self.states = []
        self.zk.add_listener(self.states.append)

    def __enter__(self):
        self.zk.start(timeout=WAIT)
        return self

    def __exit__(self, *_):
        self.zk.stop()
        self.zk.close()

    def session(self):
        """The session's id, which kazoo has only while it is connected."""
        ids = []
        eventually("connected", lambda: ids.append(self.zk.client_id) or ids[-1])
        return ids[-1][0]

    def member(self):
        for s in ask("GET", "/sessions"):
            if int(s["id"], 16) == self.session() % 2**64:
                return s["member"]
        raise AssertionError("session 0x%x is not there" % self.session())

    def again(self, f, *args, **kwargs):
        """Calls f until its connection holds."""
        retry = KazooRetry(max_tries=-1, delay=0.02, max_delay=0.1, deadline=WAIT)
        return retry(f, *args, **kwargs)


def expect(got, want):
    if got != want:
        raise AssertionError("got %r, want %r" % (got, want))


def expect_raises(error, f, *args, **kwargs):
    try:
        got = f(*args, **kwargs)
    except error:
        return
    raise AssertionError("%s returned %r, want %s" % (f.__name__, got, error.__name__))


def eventually(what, condition):
    deadline = time.monotonic() + WAIT
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("never came true: " + what)
        time.sleep(0.01)


@case
def leader_is_killed(root):
    with Client() as c:
        session = c.session()
        c.zk.create(root + "/e", b"0", ephemeral=True)
        for victim in (ask("GET", "/leader")["id"], c.member()):
            ask("POST", "/members/%d/kill" % victim)
            if ask("GET", "/leader")["id"] == victim:
                raise AssertionError("member %d leads and is dead" % victim)
            c.again(c.zk.set, root + "/e", b"1")
            ask("POST", "/members/%d/start" % victim)
        expect(c.session(), session)
        expect(c.again(c.zk.get, root + "/e")[1].ephemeralOwner, session)
        expect(KazooState.SUSPENDED in c.states, True)
        expect(KazooState.LOST in c.states, False)


@case
def create_reply_is_lost(root):
    with Client() as c:
        lost = ask("POST", "/faults", {"kind": "dropReply", "op": "create", "path": root + "/a", "session": c.session()})["id"]
        expect_raises(ConnectionLoss, c.zk.create, root + "/a", b"x")
        expect(ask("GET", "/faults/%d?wait=10s" % lost)["done"], True)
        expect(ask("GET", "/tree?path=" + root + "/a"), {root + "/a": "x"})
        # Who just tries again meets what it created itself.
        ask("POST", "/faults", {"kind": "dropReply", "op": "create", "path": root + "/b", "session": c.session()})
        expect_raises(NodeExistsError, c.again, c.zk.create, root + "/b")


@case
def lock_survives_a_lost_create_reply(root):
    with Client() as c, Client() as other:
        lock = c.zk.Lock(root + "/lock", "one")
        c.zk.ensure_path(root + "/lock")
        lost = ask("POST", "/faults", {"kind": "dropReply", "op": "create", "path": root + "/lock", "session": c.session()})["id"]
        expect(lock.acquire(timeout=WAIT), True)
        expect(ask("GET", "/faults/%d" % lost)["count"], 1)
        expect(len(other.zk.get_children(root + "/lock")), 1)
        expect(other.zk.Lock(root + "/lock", "two").acquire(blocking=False), False)
        lock.release()


@case
def session_is_expired(root):
    with Client() as c:
        session = c.session()
        c.zk.create(root + "/e", ephemeral=True)
        ask("POST", "/sessions/%d/expire" % session)
        expect(sorted(ask("GET", "/tree?path=" + root)), [root])
        eventually("the session is lost", lambda: KazooState.LOST in c.states)
        eventually("there is another", lambda: c.states[-1] == KazooState.CONNECTED and c.session() != session)
        expect(c.again(c.zk.exists, root + "/e"), None)


@case
def an_hour_passes(root):
    # A client that is connected keeps its session, and one whose member is cut off loses it.
    away = 1 + ask("GET", "/leader")["id"] % 3
    with Client(ask("GET", "/leader")["id"]) as stays, Client(away) as goes:
        session = stays.session()
        stays.zk.create(root + "/stays", ephemeral=True)
        goes.zk.create(root + "/goes", ephemeral=True)
        ask("POST", "/members/%d/partition" % away)
        ask("POST", "/advance", {"by": "1h"})
        expect(sorted(ask("GET", "/tree?path=" + root)), [root, root + "/stays"])
        expect(KazooState.LOST in goes.states, False)  # it can't know yet
        ask("POST", "/members/%d/heal" % away)
        eventually("it knows", lambda: KazooState.LOST in goes.states)
        expect(stays.session(), session)
        expect(stays.states, [KazooState.CONNECTED])


@case
def a_partition_is_healed(root):
    leader = ask("GET", "/leader")["id"]
    apart = 1 + leader % 3
    with Client(apart) as c, Client(leader) as other:
        session = c.session()
        c.zk.create(root + "/e", b"before", ephemeral=True)
        ask("POST", "/partition", {"groups": [[apart]]})
        other.zk.set(root + "/e", b"meanwhile")  # the majority goes on
        eventually("the minority serves nobody", lambda: KazooState.SUSPENDED in c.states)
        ask("POST", "/heal")
        data, stat = c.again(c.zk.get, root + "/e")
        expect((data, stat.ephemeralOwner), (b"meanwhile", session))
        expect(c.states, [KazooState.CONNECTED, KazooState.SUSPENDED, KazooState.CONNECTED])


def mend():
    """Leaves an ensemble that serves for the next case."""
    ask("DELETE", "/faults")
    ask("POST", "/heal")
    for m in ask("GET", "/status")["members"]:
        if m["state"] == "down":
            ask("POST", "/members/%d/start" % m["id"])


def main():
    logging.basicConfig(level=logging.CRITICAL)
    print("version", kazoo.__version__, flush=True)
    failed = 0
    for f in CASES:
        root = "/" + f.__name__
        try:
            mend()
            ask("PUT", "/tree", {root: ""})
            f(root)
            print("ok", f.__name__, flush=True)
        except Exception as e:
            failed += 1
            print("FAIL %s %s: %s" % (f.__name__, type(e).__name__, str(e).replace("\n", " ")), flush=True)
            traceback.print_exc()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
