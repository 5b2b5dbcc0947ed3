"""Runs kazoo, unchanged, through real work against one server and prints a line per case.

Usage: compat.py HOST:PORT SUPERPASSWORD [CA CERT KEY | USER PASSWORD]

Lines are "version V" once, then "ok NAME" or "FAIL NAME why". Exits 1 if a case failed.
"""

import logging
import socket
import sys
import threading
import time
import traceback

import kazoo
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import (
    BadArgumentsError,
    BadVersionError,
    ConnectionLoss,
    InvalidACLError,
    NoAuthError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RolledBackError,
    RuntimeInconsistency,
    ZookeeperError,
)
from kazoo.protocol.states import EventType
from kazoo.recipe.cache import TreeCache, TreeEvent
from kazoo.recipe.lease import NonBlockingLease
from kazoo.security import ACL, Id, Permissions, make_acl, make_digest_acl

HOSTS, SUPER_PASSWORD = sys.argv[1], sys.argv[2]
IDENTITY = {}
if len(sys.argv) == 6:
    IDENTITY = dict(zip(("ca", "certfile", "keyfile"), sys.argv[3:6]), use_ssl=True)
elif len(sys.argv) == 5:
    IDENTITY = {"sasl_options": {"mechanism": "DIGEST-MD5", "username": sys.argv[3], "password": sys.argv[4]}}
WAIT = 15  # seconds until something that should happen counts as missing

CASES = []


def case(f):
    CASES.append(f)
    return f


def connect(**kwargs):
    client = KazooClient(hosts=HOSTS, timeout=kwargs.pop("timeout", 10), **IDENTITY, **kwargs)
    client.start(timeout=WAIT)
    return client


def expect(got, want):
    if got != want:
        raise AssertionError("got %r, want %r" % (got, want))


def expect_raises(error, f, *args, **kwargs):
    try:
        got = f(*args, **kwargs)
    except error as e:
        return e
    raise AssertionError("%s returned %r, want %s" % (f.__name__, got, error.__name__))


def eventually(what, condition):
    deadline = time.monotonic() + WAIT
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("never came true: " + what)
        time.sleep(0.01)


class Recorder:
    """Collects what a callback is given, for waiting."""

    def __init__(self):
        self.items = []
        self.lock = threading.Condition()

    def __call__(self, *args):
        with self.lock:
            self.items.append(args[0] if len(args) == 1 else args)
            self.lock.notify_all()

    def take(self, n=1):
        with self.lock:
            if not self.lock.wait_for(lambda: len(self.items) >= n, WAIT):
                raise AssertionError("got only %r, want %d items" % (self.items, n))
            return list(self.items)


def in_thread(f, *args):
    """Runs f in a thread; the function returned waits for it and gives its result or raises its error."""
    box = {}

    def run():
        try:
            box["result"] = f(*args)
        except BaseException as e:
            box["error"] = e

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def join():
        thread.join(WAIT)
        if thread.is_alive():
            raise AssertionError("%r did not return" % f)
        if "error" in box:
            raise box["error"]
        return box.get("result")

    return join


def drop_socket(client):
    """Cuts the client's TCP connection as a broken network would; kazoo then re-attaches its session."""
    states = Recorder()
    client.add_listener(states)
    client._connection._socket.shutdown(socket.SHUT_RDWR)
    eventually("suspended", lambda: KazooState.SUSPENDED in states.items)
    eventually("connected again", lambda: states.items[-1] == KazooState.CONNECTED)
    client.remove_listener(states)
    return states.items


# Basic operations.


@case
def create_get(zk, root):
    expect(zk.create(root + "/a", b"data"), root + "/a")
    data, stat = zk.get(root + "/a")
    expect(data, b"data")
    expect((stat.version, stat.cversion, stat.aversion), (0, 0, 0))
    expect((stat.dataLength, stat.numChildren, stat.ephemeralOwner), (4, 0, 0))
    expect(stat.czxid, stat.mzxid)
    expect(stat.czxid, stat.pzxid)
    expect(stat.ctime, stat.mtime)


@case
def create_existing(zk, root):
    zk.create(root + "/a")
    expect_raises(NodeExistsError, zk.create, root + "/a")


@case
def create_without_parent(zk, root):
    expect_raises(NoNodeError, zk.create, root + "/no/a")


@case
def create_makepath(zk, root):
    expect(zk.create(root + "/x/y/z", b"1", makepath=True), root + "/x/y/z")
    expect(zk.get_children(root + "/x"), ["y"])


@case
def create_include_data(zk, root):
    path, stat = zk.create(root + "/a", b"12345", include_data=True)
    expect(path, root + "/a")
    expect((stat.version, stat.data_length), (0, 5))
    expect(stat, zk.exists(root + "/a"))


@case
def create_ephemeral(zk, root):
    zk.create(root + "/e", b"", ephemeral=True)
    expect(zk.exists(root + "/e").ephemeralOwner, zk.client_id[0])
    expect_raises(NoChildrenForEphemeralsError, zk.create, root + "/e/child")


@case
def ephemeral_goes_with_its_session(zk, root):
    other = connect()
    other.create(root + "/e", ephemeral=True)
    gone = Recorder()
    zk.exists(root + "/e", watch=gone)
    other.stop()
    other.close()
    expect(gone.take()[0].type, EventType.DELETED)
    expect(zk.exists(root + "/e"), None)


@case
def create_sequence(zk, root):
    paths = [zk.create(root + "/s-", sequence=True) for _ in range(3)]
    expect(paths, [root + "/s-%010d" % i for i in range(3)])
    zk.delete(paths[2])
    expect(zk.create(root + "/s-", sequence=True), root + "/s-0000000003")


@case
def create_ephemeral_sequence(zk, root):
    path = zk.create(root + "/es-", sequence=True, ephemeral=True)
    expect(path, root + "/es-0000000000")
    expect(zk.exists(path).ephemeralOwner, zk.client_id[0])


@case
def ensure_path(zk, root):
    zk.ensure_path(root + "/p/q/r")
    zk.ensure_path(root + "/p/q/r")
    expect(zk.exists(root + "/p/q/r").version, 0)


@case
def exists_absent(zk, root):
    expect(zk.exists(root + "/none"), None)


@case
def get_absent(zk, root):
    expect_raises(NoNodeError, zk.get, root + "/none")
    expect_raises(NoNodeError, zk.get_children, root + "/none")
    expect_raises(NoNodeError, zk.set, root + "/none", b"")
    expect_raises(NoNodeError, zk.delete, root + "/none")


@case
def set_versions(zk, root):
    zk.create(root + "/a", b"0")
    expect(zk.set(root + "/a", b"1").version, 1)
    expect(zk.set(root + "/a", b"22", version=1).version, 2)
    expect_raises(BadVersionError, zk.set, root + "/a", b"3", version=1)
    data, stat = zk.get(root + "/a")
    expect((data, stat.version, stat.dataLength), (b"22", 2, 2))


@case
def empty_data(zk, root):
    zk.create(root + "/a", b"")
    expect(zk.get(root + "/a")[0], b"")
    zk.set(root + "/a", b"x")
    zk.set(root + "/a", b"")
    expect(zk.get(root + "/a")[0], b"")


@case
def binary_data(zk, root):
    data = bytes(range(256)) * 4
    zk.create(root + "/a", data)
    expect(zk.get(root + "/a")[0], data)


@case
def unicode_path(zk, root):
    path = root + "/\u00e9t\u00e9-\u6c34"
    expect(zk.create(path, b"1"), path)
    expect(zk.get_children(root), [path.rsplit("/", 1)[1]])
    expect(zk.get(path)[0], b"1")


@case
def path_outside_the_basic_plane(zk, root):
    # Java sees two surrogates there, and ZooKeeper allows none in a path.
    expect_raises(BadArgumentsError, zk.create, root + "/\U0001f600")


@case
def large_data(zk, root):
    data = b"z" * (900 * 1024)
    zk.create(root + "/a", data)
    expect(zk.get(root + "/a")[0] == data, True)
    expect(zk.exists(root + "/a").dataLength, len(data))


@case
def oversized_request_costs_only_the_connection(zk, root):
    other = connect()
    session = other.client_id[0]
    states = Recorder()
    other.add_listener(states)
    expect_raises(ConnectionLoss, other.create, root + "/a", b"z" * (3 * 1024 * 1024))
    eventually("connected again", lambda: states.items and states.items[-1] == KazooState.CONNECTED)
    expect(other.client_id[0], session)
    expect(zk.exists(root + "/a"), None)
    other.stop()
    other.close()


@case
def delete_versions(zk, root):
    zk.create(root + "/a")
    expect_raises(BadVersionError, zk.delete, root + "/a", version=1)
    expect(zk.delete(root + "/a", version=0), True)


@case
def delete_not_empty(zk, root):
    zk.create(root + "/a/b", makepath=True)
    expect_raises(NotEmptyError, zk.delete, root + "/a")
    zk.delete(root + "/a", recursive=True)
    expect(zk.exists(root + "/a"), None)


@case
def children(zk, root):
    for name in "cab":
        zk.create(root + "/" + name)
    expect(sorted(zk.get_children(root)), ["a", "b", "c"])
    names, stat = zk.get_children(root, include_data=True)
    expect((sorted(names), stat.numChildren, stat.cversion), (["a", "b", "c"], 3, 3))


@case
def many_children(zk, root):
    results = [zk.create_async(root + "/child-%04d" % i, b"") for i in range(2000)]
    for r in results:
        r.get(timeout=WAIT)
    expect(sorted(zk.get_children(root)), ["child-%04d" % i for i in range(2000)])


@case
def sync(zk, root):
    expect(zk.sync(root), root)


@case
def chroot(zk, root):
    zk.create(root + "/jail")
    other = KazooClient(hosts=HOSTS + root + "/jail", **IDENTITY)
    other.start(timeout=WAIT)
    other.create("/a", b"in")
    expect(zk.get(root + "/jail/a")[0], b"in")
    seen = Recorder()
    other.get("/a", watch=seen)
    zk.set(root + "/jail/a", b"changed")
    expect(seen.take()[0].path, "/a")
    other.stop()
    other.close()


@case
def reserved_tree(zk, root):
    expect(set(zk.get_children("/zookeeper")) >= {"config", "quota"}, True)
    expect("zookeeper" in zk.get_children("/"), True)


# Transactions.


@case
def transaction_commits(zk, root):
    zk.create(root + "/a", b"0")
    t = zk.transaction()
    t.check(root + "/a", 0)
    t.create(root + "/b", b"1")
    t.create(root + "/b/c-", b"2", sequence=True)
    t.set_data(root + "/a", b"x")
    t.delete(root + "/a", version=1)
    r = t.commit()
    expect(r[0], True)
    expect(r[1:3], [root + "/b", root + "/b/c-0000000000"])
    expect(r[3].version, 1)
    expect(r[4], True)
    expect(zk.exists(root + "/a"), None)
    expect(zk.exists(root + "/b").czxid, zk.exists(root + "/b/c-0000000000").czxid)


@case
def transaction_rolls_back(zk, root):
    zk.create(root + "/a", b"0")
    t = zk.transaction()
    t.create(root + "/b")
    t.check(root + "/a", 7)
    t.create(root + "/c")
    r = t.commit()
    expect([type(x) for x in r], [RolledBackError, BadVersionError, RuntimeInconsistency])
    expect(zk.get_children(root), ["a"])


@case
def transaction_empty(zk, root):
    expect(zk.transaction().commit(), [])


# ACLs and authentication.


@case
def acl_default(zk, root):
    zk.create(root + "/a")
    acls, stat = zk.get_acls(root + "/a")
    expect(acls, [ACL(Permissions.ALL, Id("world", "anyone"))])
    expect(stat.aversion, 0)


@case
def acl_set(zk, root):
    zk.create(root + "/a")
    stat = zk.set_acls(root + "/a", [make_acl("world", "anyone", all=True), make_acl("ip", "127.0.0.1", read=True)], version=0)
    expect(stat.aversion, 1)
    expect_raises(BadVersionError, zk.set_acls, root + "/a", [make_acl("world", "anyone", all=True)], version=0)
    expect(len(zk.get_acls(root + "/a")[0]), 2)


@case
def acl_invalid(zk, root):
    expect_raises(InvalidACLError, zk.create, root + "/a", acl=[make_acl("nosuchscheme", "x", all=True)])


@case
def acl_digest_refuses_others(zk, root):
    acl = make_digest_acl("joe", "secret", all=True)
    owner = connect(auth_data=[("digest", "joe:secret")])
    owner.create(root + "/a", b"mine", acl=[acl])
    expect(owner.get(root + "/a")[0], b"mine")
    expect_raises(NoAuthError, zk.get, root + "/a")
    expect_raises(NoAuthError, zk.set, root + "/a", b"")
    expect_raises(NoAuthError, zk.create, root + "/a/b")
    expect_raises(NoAuthError, zk.get_children, root + "/a")
    late = connect()
    expect_raises(NoAuthError, late.get, root + "/a")
    late.add_auth("digest", "joe:secret")
    expect(late.get(root + "/a")[0], b"mine")
    late.delete(root + "/a")
    for client in (owner, late):
        client.stop()
        client.close()


@case
def acl_creator_all(zk, root):
    owner = connect(auth_data=[("digest", "ann:pw")])
    owner.create(root + "/a", acl=[ACL(Permissions.ALL, Id("auth", ""))])
    expect(owner.get_acls(root + "/a")[0], [make_digest_acl("ann", "pw", all=True)])
    owner.delete(root + "/a")
    owner.stop()
    owner.close()


@case
def superuser(zk, root):
    zk.create(root + "/a", b"1", acl=[make_digest_acl("nobody", "x", all=True)])
    expect_raises(NoAuthError, zk.get, root + "/a")
    boss = connect(auth_data=[("digest", "super:" + SUPER_PASSWORD)])
    expect(boss.get(root + "/a")[0], b"1")
    boss.delete(root + "/a")
    boss.stop()
    boss.close()


@case
def auth_survives_reconnect(zk, root):
    owner = connect(auth_data=[("digest", "joe:secret")])
    owner.create(root + "/a", b"mine", acl=[make_digest_acl("joe", "secret", all=True)])
    drop_socket(owner)
    expect(owner.get(root + "/a")[0], b"mine")
    owner.delete(root + "/a")
    owner.stop()
    owner.close()


# Watches.


@case
def watch_get(zk, root):
    zk.create(root + "/a")
    seen = Recorder()
    zk.get(root + "/a", watch=seen)
    zk.set(root + "/a", b"1")
    zk.set(root + "/a", b"2")
    expect([(e.type, e.path) for e in seen.take()], [(EventType.CHANGED, root + "/a")])


@case
def watch_exists(zk, root):
    seen = Recorder()
    zk.exists(root + "/a", watch=seen)
    zk.create(root + "/a")
    expect(seen.take()[0].type, EventType.CREATED)
    zk.exists(root + "/a", watch=seen)
    zk.delete(root + "/a")
    expect(seen.take(2)[1].type, EventType.DELETED)


@case
def watch_children(zk, root):
    seen = Recorder()
    zk.get_children(root, watch=seen)
    zk.create(root + "/a")
    expect([(e.type, e.path) for e in seen.take()], [(EventType.CHILD, root)])


@case
def data_watch(zk, root):
    seen = Recorder()
    zk.DataWatch(root + "/a", lambda data, stat: seen((data, stat.version if stat else None)))
    zk.create(root + "/a", b"1")
    seen.take(2)
    zk.set(root + "/a", b"2")
    seen.take(3)
    zk.delete(root + "/a")
    expect(seen.take(4), [(None, None), (b"1", 0), (b"2", 1), (None, None)])


@case
def children_watch(zk, root):
    seen = Recorder()
    zk.ChildrenWatch(root, lambda names: seen(sorted(names)))
    seen.take(1)
    zk.create(root + "/a")
    seen.take(2)
    zk.create(root + "/b")
    seen.take(3)
    zk.delete(root + "/a")
    expect(seen.take(4), [[], ["a"], ["a", "b"], ["b"]])


@case
def watches_survive_reconnect(zk, root):
    zk.create(root + "/a", b"0")
    other = connect()
    seen = Recorder()
    other.DataWatch(root + "/a", lambda data, stat: seen(data))
    seen.take(1)
    drop_socket(other)
    zk.set(root + "/a", b"1")
    eventually("the change was seen", lambda: b"1" in seen.items)
    other.stop()
    other.close()


# Sessions.


@case
def reconnect_keeps_session(zk, root):
    other = connect()
    session = other.client_id[0]
    other.create(root + "/e", b"", ephemeral=True)
    states = drop_socket(other)
    expect(KazooState.LOST in states, False)
    expect(other.client_id[0], session)
    expect(zk.exists(root + "/e").ephemeralOwner, session)
    other.stop()
    other.close()


@case
def session_closed_from_elsewhere(zk, root):
    victim = connect()
    victim.create(root + "/e", b"", ephemeral=True)
    session = victim.client_id
    states = Recorder()
    victim.add_listener(states)
    thief = KazooClient(hosts=HOSTS, timeout=10, client_id=session, **IDENTITY)
    thief.start(timeout=WAIT)
    expect(thief.client_id[0], session[0])
    thief.stop()
    thief.close()
    eventually("session lost", lambda: KazooState.LOST in states.items)
    eventually("a new session", lambda: states.items[-1] == KazooState.CONNECTED)
    expect(victim.client_id[0] != session[0], True)
    expect(zk.exists(root + "/e"), None)
    victim.stop()
    victim.close()


@case
def session_expires(zk, root):
    victim = connect(timeout=1)
    victim.create(root + "/e", b"", ephemeral=True)
    gone = Recorder()
    zk.exists(root + "/e", watch=gone)
    # Nothing more is sent, but no close either: the server sees a client that fell silent.
    victim._connection.ping_sender = None
    victim._connection._socket.shutdown(socket.SHUT_RDWR)
    hosts, victim.hosts = victim.hosts, [("127.0.0.1", 1)]
    started = time.monotonic()
    expect(gone.take()[0].type, EventType.DELETED)
    expect(time.monotonic() - started < 5, True)
    victim.hosts = hosts
    victim.stop()
    victim.close()


@case
def idle_session_lives(zk, root):
    """Its pings must keep the session of a client that is idle for three times its timeout."""
    other = connect(timeout=1)
    other.create(root + "/e", b"", ephemeral=True)
    states, events = Recorder(), Recorder()
    other.add_listener(states)
    zk.exists(root + "/e", watch=events)
    time.sleep(3)
    expect((states.items, events.items), ([], []))
    other.stop()
    other.close()


@case
def wrong_password_gets_a_new_session(zk, root):
    victim = connect()
    victim.create(root + "/e", ephemeral=True)
    session = victim.client_id[0]
    other = KazooClient(hosts=HOSTS, timeout=10, client_id=(session, b"p" * 16), **IDENTITY)
    other.start(timeout=WAIT)
    expect(other.client_id[0] != session, True)
    expect(other.exists(root + "/e").ephemeralOwner, session)
    # ZooKeeper drops the victim's connection before it looks at the password; the session must live either way.
    eventually("connected", lambda: victim.connected)
    expect(victim.retry(victim.exists, root + "/e").ephemeralOwner, session)
    for client in (other, victim):
        client.stop()
        client.close()


@case
def restart_client(zk, root):
    other = connect()
    other.create(root + "/e", ephemeral=True)
    first = other.client_id[0]
    other.restart()
    expect(other.client_id[0] != first, True)
    expect(other.exists(root + "/e"), None)
    other.stop()
    other.close()


# Pipelining.


@case
def pipelined_creates(zk, root):
    results = [zk.create_async(root + "/n-", b"%d" % i, sequence=True) for i in range(1000)]
    expect([r.get(timeout=WAIT) for r in results], [root + "/n-%010d" % i for i in range(1000)])


@case
def pipelined_mixture(zk, root):
    zk.create(root + "/a", b"")
    results = []
    for i in range(200):
        results.append(zk.set_async(root + "/a", b"%d" % i))
        results.append(zk.get_async(root + "/a"))
    for i in range(200):
        expect(results[2 * i].get(timeout=WAIT).version, i + 1)
        expect(results[2 * i + 1].get(timeout=WAIT)[0], b"%d" % i)


# The server itself.


@case
def server_version(zk, root):
    version = zk.server_version()
    expect(len(version) >= 3 and version >= (3, 4, 0), True)


@case
def four_letter_words(zk, root):
    expect(zk.command(b"ruok"), "imok")
    for word, want in (
        (b"srvr", "Mode: standalone"),
        (b"stat", "Clients:"),
        (b"mntr", "zk_znode_count"),
        (b"conf", "clientPort="),
        (b"cons", "sid=0x"),
        (b"envi", "Environment:"),
        (b"wchs", "connections watching"),
        (b"isro", "rw"),
        (b"dump", "SessionTracker dump"),
    ):
        answer = zk.command(word)
        if want not in answer:
            raise AssertionError("%r answered %r, without %r" % (word, answer, want))


@case
def reconfig_on_a_standalone_server(zk, root):
    # Without rights to the config node a server may refuse for that first.
    boss = connect(auth_data=[("digest", "super:" + SUPER_PASSWORD)])
    expect_raises(ZookeeperError, boss.reconfig, joining="server.100=127.0.0.1:1:2;3", leaving=None, new_members=None)
    expect(boss.connected, True)
    boss.stop()
    boss.close()


# Recipes.


def two_clients(f):
    def run(zk, root):
        other = connect()
        try:
            f(zk, other, root)
        finally:
            other.stop()
            other.close()

    run.__name__ = f.__name__
    return case(run)


@two_clients
def recipe_lock(zk, other, root):
    first, second = zk.Lock(root + "/lock", "one"), other.Lock(root + "/lock", "two")
    expect(first.acquire(), True)
    expect(second.acquire(blocking=False), False)
    join = in_thread(lambda: second.acquire(timeout=WAIT))
    eventually("two contenders", lambda: zk.Lock(root + "/lock").contenders() == ["one", "two"])
    first.release()
    expect(join(), True)
    second.release()


@two_clients
def recipe_lock_excludes(zk, other, root):
    inside, count = [0], [0]

    def work(client):
        for _ in range(10):
            with client.Lock(root + "/lock"):
                inside[0] += 1
                expect(inside[0], 1)
                count[0] += 1
                inside[0] -= 1

    joins = [in_thread(work, zk), in_thread(work, other)]
    for join in joins:
        join()
    expect(count[0], 20)


@two_clients
def recipe_lock_goes_with_its_session(zk, other, root):
    expect(other.Lock(root + "/lock").acquire(), True)
    mine = zk.Lock(root + "/lock")
    join = in_thread(lambda: mine.acquire(timeout=WAIT))
    other.stop()
    expect(join(), True)
    mine.release()
    other.start(timeout=WAIT)


@two_clients
def recipe_read_write_lock(zk, other, root):
    reader, another = zk.ReadLock(root + "/rw"), other.ReadLock(root + "/rw")
    writer = other.WriteLock(root + "/rw")
    expect(reader.acquire(), True)
    expect(another.acquire(timeout=WAIT), True)
    expect(writer.acquire(blocking=False), False)
    join = in_thread(lambda: writer.acquire(timeout=WAIT))
    reader.release()
    another.release()
    expect(join(), True)
    expect(zk.ReadLock(root + "/rw").acquire(blocking=False), False)
    writer.release()


@two_clients
def recipe_semaphore(zk, other, root):
    a, b = zk.Semaphore(root + "/sem", "a", max_leases=2), other.Semaphore(root + "/sem", "b", max_leases=2)
    c = other.Semaphore(root + "/sem", "c", max_leases=2)
    expect((a.acquire(), b.acquire()), (True, True))
    expect(sorted(a.lease_holders()), ["a", "b"])
    expect(c.acquire(blocking=False), False)
    join = in_thread(lambda: c.acquire(timeout=WAIT))
    a.release()
    expect(join(), True)
    b.release()
    c.release()


@two_clients
def recipe_election(zk, other, root):
    led, release = Recorder(), threading.Event()

    def lead(name):
        led(name)
        release.wait(WAIT)

    first, second = zk.Election(root + "/el", "one"), other.Election(root + "/el", "two")
    joins = [in_thread(first.run, lead, "one")]
    led.take(1)
    joins.append(in_thread(second.run, lead, "two"))
    eventually("two contenders", lambda: first.contenders() == ["one", "two"])
    expect(led.items, ["one"])
    release.set()
    for join in joins:
        join()
    expect(led.items, ["one", "two"])


@case
def recipe_queue(zk, root):
    queue = zk.Queue(root + "/q")
    for value, priority in ((b"low", 200), (b"one", 100), (b"two", 100), (b"high", 1)):
        queue.put(value, priority)
    expect(len(queue), 4)
    expect([queue.get() for _ in range(5)], [b"high", b"one", b"two", b"low", None])


@two_clients
def recipe_locking_queue(zk, other, root):
    mine, theirs = zk.LockingQueue(root + "/lq"), other.LockingQueue(root + "/lq")
    mine.put_all([b"a", b"b"])
    expect(theirs.get(timeout=WAIT), b"a")
    expect(theirs.holds_lock(), True)
    expect(mine.get(timeout=WAIT), b"b")
    expect((mine.consume(), theirs.consume()), (True, True))
    expect(len(mine), 0)
    join = in_thread(lambda: theirs.get(timeout=WAIT))
    mine.put(b"late")
    expect(join(), b"late")
    theirs.release()
    expect(mine.get(timeout=WAIT), b"late")
    mine.consume()


@two_clients
def recipe_barrier(zk, other, root):
    barrier = zk.Barrier(root + "/barrier")
    barrier.create()
    expect(other.Barrier(root + "/barrier").wait(timeout=0.05), False)
    join = in_thread(lambda: other.Barrier(root + "/barrier").wait(timeout=WAIT))
    barrier.remove()
    expect(join(), True)


@two_clients
def recipe_double_barrier(zk, other, root):
    one, two = zk.DoubleBarrier(root + "/db", 2, "one"), other.DoubleBarrier(root + "/db", 2, "two")
    join = in_thread(one.enter)
    two.enter()
    join()
    expect((one.participating, two.participating), (True, True))
    join = in_thread(one.leave)
    two.leave()
    join()
    expect((one.participating, two.participating), (False, False))


@two_clients
def recipe_counter(zk, other, root):
    def work(client):
        counter = client.Counter(root + "/counter")
        for _ in range(25):
            counter += 1

    joins = [in_thread(work, zk), in_thread(work, other)]
    for join in joins:
        join()
    expect(zk.Counter(root + "/counter").value, 50)


@two_clients
def recipe_party(zk, other, root):
    mine, theirs = zk.Party(root + "/party", "one"), other.Party(root + "/party", "two")
    mine.join()
    theirs.join()
    expect((sorted(mine), len(theirs)), (["one", "two"], 2))
    theirs.leave()
    expect(list(mine), ["one"])
    shallow = other.ShallowParty(root + "/shallow", "three")
    shallow.join()
    expect(list(zk.ShallowParty(root + "/shallow")), ["three"])


@two_clients
def recipe_partitioner(zk, other, root):
    parts = [
        client.SetPartitioner(root + "/parts", set=tuple(range(6)), identifier=name, time_boundary=0.2)
        for client, name in ((zk, "one"), (other, "two"))
    ]
    for join in [in_thread(p.wait_for_acquire, WAIT) for p in parts]:
        join()

    def settled():
        for p in parts:
            if p.release:
                p.release_set()
            elif p.allocating:
                p.wait_for_acquire(0.1)
        return all(p.acquired for p in parts) and sorted(list(parts[0]) + list(parts[1])) == list(range(6))

    eventually("the set is shared out", settled)
    for p in parts:
        p.finish()


@two_clients
def recipe_lease(zk, other, root):
    import datetime

    hour = datetime.timedelta(hours=1)
    expect(bool(NonBlockingLease(zk, root + "/lease", hour, identifier="one")), True)
    expect(bool(NonBlockingLease(other, root + "/lease", hour, identifier="two")), False)
    expect(bool(NonBlockingLease(zk, root + "/lease", hour, identifier="one")), True)


@two_clients
def recipe_tree_cache(zk, other, root):
    zk.create(root + "/t/a/b", b"1", makepath=True)
    cache, events = TreeCache(other, root + "/t"), Recorder()
    cache.listen(events)
    cache.start()
    eventually("initialized", lambda: any(e.event_type == TreeEvent.INITIALIZED for e in list(events.items)))
    expect(cache.get_data(root + "/t/a/b").data, b"1")
    zk.set(root + "/t/a/b", b"2")
    zk.create(root + "/t/c", b"3")
    eventually("updated", lambda: cache.get_data(root + "/t/a/b").data == b"2")
    eventually("added", lambda: cache.get_children(root + "/t") == {"a", "c"})
    zk.delete(root + "/t/a", recursive=True)
    eventually("removed", lambda: cache.get_children(root + "/t") == {"c"})
    cache.close()


def main():
    logging.basicConfig(level=logging.CRITICAL)
    print("version", kazoo.__version__, flush=True)
    failed = 0
    zk = connect()
    for f in CASES:
        root = "/kazoo-" + f.__name__
        try:
            zk.create(root)
            f(zk, root)
            zk.delete(root, recursive=True)
            print("ok", f.__name__, flush=True)
        except Exception as e:
            failed += 1
            print("FAIL %s %s: %s" % (f.__name__, type(e).__name__, str(e).replace("\n", " ")), flush=True)
            traceback.print_exc()
    zk.stop()
    zk.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
