"""kazoo's part in recipes that processes in several languages share: does what it is told, line by line.

Usage: peer.py HOST:PORT TIMEOUT_MS

Says "0 ready VERSION" once it is connected. Then reads requests "ID HANDLE VERB ARG..." and answers "ID ok WORD..." or
"ID err why". Requests of one handle run one after another, handles side by side. Data are in hex, "-" when empty. Ends
with its standard input.
"""

import datetime
import logging
import queue
import sys
import threading
import time
import traceback

import kazoo
from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import BadVersionError, LockTimeout, NoNodeError
from kazoo.recipe.barrier import Barrier, DoubleBarrier
from kazoo.recipe.counter import Counter
from kazoo.recipe.election import Election
from kazoo.recipe.lease import NonBlockingLease
from kazoo.recipe.lock import Lock, ReadLock, Semaphore, WriteLock
from kazoo.recipe.partitioner import SetPartitioner
from kazoo.recipe.party import Party, ShallowParty
from kazoo.recipe.queue import LockingQueue, Queue

import curator_layout as curator

VERBS = {}


def verb(name):
    def add(f):
        VERBS[name] = f
        return f

    return add


def unhex(word):
    return b"" if word == "-" else bytes.fromhex(word)


def tohex(data):
    return data.hex() or "-"


def yes(b):
    return "yes" if b else "no"


def again(make, use):
    """Calls use(make()), once more with a new object whenever the parent has gone: Curator and Go make their parents as
    containers, which the server deletes when they are empty, and kazoo looks for its parent once per object."""
    while True:
        x = make()
        try:
            return x, use(x)
        except NoNodeError:
            pass


class Handle:
    """One thread of work in this process, with what it holds."""

    def __init__(self, peer):
        self.peer = peer
        self.client = peer.client
        self.object = None
        self.release = None
        self.requests = queue.Queue()
        threading.Thread(target=self.run, daemon=True).start()

    def holds(self, release):
        if self.release is not None:
            raise ValueError("the handle holds something already")
        self.release = release

    def run(self):
        while True:
            id_, f, args = self.requests.get()
            try:
                answer = f(self, *args)
                self.peer.answer(id_, ("ok " + (answer or "")).strip())
            except Exception as e:
                traceback.print_exc()
                self.peer.answer(id_, "err " + repr(e).replace("\n", " "))


@verb("release")
def release(h):
    r, h.release = h.release, None
    if r is None:
        raise ValueError("the handle holds nothing")
    r()


@verb("get")
def get(h, path):
    return tohex(h.client.get(path)[0])


@verb("set")
def set_(h, path, data):
    h.client.set(path, unhex(data))


def lock_verbs(suffix, make):
    def lock(h, path):
        held, _ = again(lambda: make(h.client, path), lambda x: x.acquire())
        h.holds(held.release)

    def trylock(h, path, ms):
        how = {"timeout": int(ms) / 1000} if int(ms) else {"blocking": False}
        try:
            held, got = again(lambda: make(h.client, path), lambda x: x.acquire(**how))
        except LockTimeout:
            got = False
        if got:
            h.holds(held.release)
        return yes(got)

    verb(suffix)(lock)
    verb("try" + suffix)(trylock)


lock_verbs("lock", curator.CuratorLock)
lock_verbs("wlock", curator.CuratorWriteLock)
lock_verbs("rlock", curator.CuratorReadLock)

# kazoo as it is.
lock_verbs("kazoo-lock", Lock)
lock_verbs("kazoo-wlock", WriteLock)
lock_verbs("kazoo-rlock", ReadLock)

# kazoo with its own names, told of Curator's: Go understands both, Curator does not.
lock_verbs("extra-lock", lambda c, path: Lock(c, path, extra_lock_patterns=["lock-"]))
lock_verbs("extra-wlock", lambda c, path: WriteLock(c, path, extra_lock_patterns=["__READ__", "__WRIT__"]))
lock_verbs("extra-rlock", lambda c, path: ReadLock(c, path, extra_lock_patterns=["__WRIT__"]))


@verb("revoke")
def revoke(h, path):
    """kazoo can't revoke; Curator's way is to write this."""
    h.client.set(path, b"__REVOKE__")


def semaphore_verbs(prefix, make):
    def acquire(h, path, most):
        held, _ = again(lambda: make(h.client, path, max_leases=int(most)), lambda x: x.acquire())
        h.holds(held.release)

    def tryacquire(h, path, most, ms):
        how = {"timeout": int(ms) / 1000} if int(ms) else {"blocking": False}
        try:
            held, got = again(
                lambda: make(h.client, path, max_leases=int(most)), lambda x: x.acquire(**how)
            )
        except LockTimeout:
            got = False
        if got:
            h.holds(held.release)
        return yes(got)

    verb(prefix + "acquire")(acquire)
    verb("try" + prefix + "acquire")(tryacquire)


semaphore_verbs("", curator.CuratorSemaphore)
semaphore_verbs("kazoo-", Semaphore)


def stand(h, path, id_, lock_class):
    elected, resigned = threading.Event(), threading.Event()
    elections = []

    def make():
        election = Election(h.client, path, id_)
        election.lock = lock_class(h.client, path, id_)
        elections.append(election)
        return election

    def lead():
        elected.set()
        resigned.wait()

    def run():
        again(make, lambda x: x.run(lead))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    h.object = elected

    def leave():
        resigned.set()
        while thread.is_alive():  # again may make another election meanwhile
            if elections:
                elections[-1].cancel()
            thread.join(0.1)

    h.holds(leave)


# What stands in the election, by the kind of it: Curator's two, kazoo as it is, and kazoo told of Curator's names.
ELECTIONS = {
    "latch": curator.LatchLock,
    "select": curator.CuratorLock,
    "kazoo-select": Lock,
    "extra-select": lambda c, path, id_=None: Lock(c, path, id_, extra_lock_patterns=["lock-"]),
}

for kind in ELECTIONS:
    verb(kind)(lambda h, path, id_, kind=kind: stand(h, path, id_, ELECTIONS[kind]))


@verb("leader")
def leader(h, ms):
    return yes(h.object.wait(int(ms) / 1000))


@verb("candidates")
def candidates(h, kind, path):
    return " ".join(ELECTIONS[kind](h.client, path).contenders())


def queue_of(kind, client, path):
    if kind == "simple":
        return curator.SimpleQueue(client, path)
    if kind in ("queue", "priority", "id"):
        return curator.CuratorQueue(client, path)
    if kind == "locked":
        return curator.CuratorLockingQueue(client, path)
    if kind == "kazoo":
        return Queue(client, path)
    if kind == "kazoo-locked":
        return LockingQueue(client, path)
    raise ValueError("no queue " + kind)


@verb("put")
def put(h, kind, path, data, *arg):
    extra = ()
    if kind == "priority":
        n = int(arg[0])
        extra = ("%d%08X" % (n >= 0, n & 0xFFFFFFFF),)
    elif kind == "id":
        extra = ("|%s|" % arg[0],)
    elif kind in ("kazoo", "kazoo-locked") and arg:
        extra = (int(arg[0]),)
    again(lambda: queue_of(kind, h.client, path), lambda x: x.put(unhex(data), *extra))


@verb("consume")
def consume(h, kind, path):
    q = [queue_of(kind, h.client, path)]
    locked = kind in ("locked", "kazoo-locked")

    def take(ms):
        if locked:
            return q[0].get(ms / 1000)
        # kazoo's Queue does not wait.
        deadline = time.monotonic() + ms / 1000
        while True:
            q[0], item = again(lambda: queue_of(kind, h.client, path), lambda x: x.get())
            if item is not None or time.monotonic() > deadline:
                return item
            time.sleep(0.005)

    h.object = (take, q[0])
    h.holds(lambda: None)


@verb("take")
def take(h, ms):
    item = h.object[0](int(ms))
    return "none" if item is None else tohex(item)


@verb("ack")
def ack(h):
    if not h.object[1].consume():
        raise AssertionError("the item's lock is no longer held")


@verb("return")
def return_(h):
    if not h.object[1].release():
        raise AssertionError("the item's lock is no longer held")


@verb("barrier-set")
def barrier_set(h, path):
    Barrier(h.client, path).create()


@verb("barrier-remove")
def barrier_remove(h, path):
    Barrier(h.client, path).remove()


@verb("barrier-wait")
def barrier_wait(h, path, ms):
    return yes(Barrier(h.client, path).wait(int(ms) / 1000))


@verb("enter")
def enter(h, path, members):
    h.object = DoubleBarrier(h.client, path, int(members))
    h.object.enter()
    return yes(h.object.participating)


@verb("leave")
def leave(h):
    h.object.leave()
    return "yes"


@verb("count")
def count(h, kind, path):
    if kind == "int":
        h.object = Counter(h.client, path, support_curator=True)
    elif kind == "kazoo-int":
        h.object = Counter(h.client, path)
    else:
        h.object = curator.LongCounter(h.client, path)
    h.holds(lambda: None)


@verb("add")
def add(h, delta):
    h.object += int(delta)
    return str(h.object.post_value)


class Value:
    """SharedValue, of which kazoo has nothing but its watch."""

    def __init__(self, client, path, seed):
        self.client, self.path = client, path
        self.changed = threading.Condition()
        self.data, self.version, self.closed = None, None, False
        self.awaited = None  # the version that wait has seen last: the other one follows the server
        if not client.exists(path):
            client.ensure_path(path)
            client.set(path, seed)
        client.DataWatch(path, self.see)

    def see(self, data, stat):
        with self.changed:
            self.data, self.version = data, stat and stat.version
            self.changed.notify_all()
            return not self.closed

    def try_(self, data):
        try:
            self.client.set(self.path, data, version=self.awaited)
            return True
        except BadVersionError:
            return False

    def wait(self, want, seconds):
        with self.changed:
            came = self.changed.wait_for(lambda: self.data == want, seconds)
            self.awaited = self.version
            return came

    def close(self):
        self.closed = True


@verb("value")
def value(h, path, seed):
    h.object = Value(h.client, path, unhex(seed))
    h.holds(h.object.close)


@verb("value-set")
def value_set(h, data):
    h.client.set(h.object.path, unhex(data))


@verb("value-try")
def value_try(h, data):
    return yes(h.object.try_(unhex(data)))


@verb("value-await")
def value_await(h, data, ms):
    return yes(h.object.wait(unhex(data), int(ms) / 1000))


@verb("join")
def join(h, path, id_, data):
    h.object, _ = again(lambda: curator.GroupParty(h.client, path, id_, unhex(data)), lambda x: x.join())
    h.holds(h.object.leave)


@verb("members")
def members(h):
    return " ".join("%s=%s" % (k, tohex(v)) for k, v in sorted(h.object.members().items()))


@verb("party")
def party(h, kind, path, id_):
    h.object = (ShallowParty if kind == "shallow" else Party)(h.client, path, id_)
    h.object.join()
    h.holds(h.object.leave)


@verb("guests")
def guests(h):
    return " ".join(sorted(h.object))


@verb("lease")
def lease(h, path, holder, ms):
    obtained = NonBlockingLease(h.client, path, datetime.timedelta(milliseconds=int(ms)), holder)
    return yes(obtained)


class Part:
    """Follows a partitioner as its documentation says: acquires, and releases when the members change."""

    def __init__(self, client, path, id_, parts):
        self.partitioner = SetPartitioner(client, path, parts, identifier=id_, time_boundary=0.2, max_reaction_time=0.05)
        self.parts, self.closed = None, threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        p = self.partitioner
        while not self.closed.wait(0.01) and not p.failed:
            if p.release:
                self.parts = None
                p.release_set()
            elif p.acquired:
                self.parts = list(p)
            elif p.allocating:
                p.wait_for_acquire(0.05)

    def close(self):
        self.closed.set()
        self.thread.join()
        self.parts = None
        self.partitioner.finish()


@verb("partition")
def partition(h, path, id_, *parts):
    h.object = Part(h.client, path, id_, parts)
    h.holds(h.object.close)


@verb("share")
def share(h):
    parts = h.object.parts
    return "none" if parts is None else " ".join(sorted(parts))


@verb("hold")
def hold(h, kind, path, id_):
    """Acquires a lock, a lease or leadership; the handle's object is the znode that exists as long as it is held."""
    if kind == "mutex":
        held, _ = again(lambda: curator.CuratorLock(h.client, path), lambda x: x.acquire())
        h.object = path + "/" + held.node
        h.holds(held.release)
    elif kind == "semaphore":
        held, _ = again(lambda: curator.CuratorSemaphore(h.client, path, max_leases=2), lambda x: x.acquire())
        h.object = held.create_path
        h.holds(held.release)
    else:
        locks = []

        def latch(*args):
            locks.append(curator.LatchLock(*args))
            return locks[-1]

        stand(h, path, id_, latch)
        h.object.wait()
        h.object = path + "/" + locks[-1].node


@verb("commit")
def commit(h, counter, value, op):
    """Sets counter, unless it is "-", and creates op, in a multi that checks the znode of the lock."""
    multi = h.client.transaction()
    multi.check(h.object, -1)
    if counter != "-":
        multi.set_data(counter, unhex(value))
    multi.create(op)
    return yes(not any(isinstance(r, Exception) for r in multi.commit()))


@verb("losses")
def losses(h):
    return str(h.peer.losses)


@verb("node")
def node(h, path, data):
    h.client.create(path, unhex(data), ephemeral=True, makepath=True)
    h.holds(lambda: h.client.delete(path))


@verb("register")
def register(h, base, name, id_, address, port, payload):
    path = curator.Discovery(h.client, base).register(name, id_, address, int(port), payload)
    h.holds(lambda: h.client.delete(path))


@verb("instances")
def instances(h, base, name):
    """id|address|port|payload|type of each, in order of their ids."""
    found = curator.Discovery(h.client, base).instances(name)
    fields = ("id", "address", "port", "payload", "serviceType")
    return " ".join(sorted("|".join(str(i[f]) for f in fields) for i in found))


class Peer:
    def __init__(self, hosts, timeout_ms, out):
        self.out = out
        self.lock = threading.Lock()
        self.handles = {}
        self.losses = 0
        self.client = KazooClient(hosts=hosts, timeout=timeout_ms / 1000)
        self.client.add_listener(self.changed)
        self.client.start(timeout=15)

    def changed(self, state):
        if state == KazooState.SUSPENDED:
            self.losses += 1

    def accept(self, id_, handle, name, *args):
        if name not in VERBS:
            self.answer(id_, "err no verb " + name)
            return
        if handle not in self.handles:
            self.handles[handle] = Handle(self)
        self.handles[handle].requests.put((id_, VERBS[name], args))

    def answer(self, id_, words):
        with self.lock:
            self.out.write("%s %s\n" % (id_, words))
            self.out.flush()


def main():
    logging.basicConfig(level=logging.CRITICAL)
    out, sys.stdout = sys.stdout, sys.stderr  # nothing else may write between the answers
    peer = Peer(sys.argv[1], int(sys.argv[2]), out)
    peer.answer(0, "ready " + kazoo.__version__)
    for line in sys.stdin:
        peer.accept(*line.split())
    peer.client.stop()
    peer.client.close()


main()
