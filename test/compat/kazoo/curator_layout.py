"""kazoo's recipes with the node names of Curator's, so that both can be used on one path.

kazoo decides by the middle of a znode's name who stands in line, and Curator by what follows the last "lock-", so the
subclasses differ from kazoo's own classes in names only; the queues also in the bytes around an item, because Curator's
have such. docs/guide/recipes.md says which need what.
"""

import json
import struct

from kazoo.exceptions import BadVersionError, NoNodeError
from kazoo.recipe.counter import Counter
from kazoo.recipe.lock import Lock, ReadLock, Semaphore, WriteLock
from kazoo.recipe.party import BaseParty
from kazoo.recipe.queue import LockingQueue, Queue
from kazoo.retry import ForceRetryError


class CuratorLock(Lock):
    """InterProcessMutex, and LeaderSelector if it is the lock of an Election. Curator looks for "lock-", which __lock__
    does not contain."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class LatchLock(Lock):
    """LeaderLatch, if it is the lock of an Election."""

    _NODE_NAME = "-latch-"
    _EXCLUDE_NAMES = ["-latch-"]


class CuratorWriteLock(WriteLock):
    _NODE_NAME = "__WRIT__"
    _EXCLUDE_NAMES = ["__WRIT__", "__READ__"]


class CuratorReadLock(ReadLock):
    _NODE_NAME = "__READ__"
    _EXCLUDE_NAMES = ["__WRIT__"]


class _CuratorLocks:
    """A client whose Lock has Curator's names: Semaphore makes its inner lock with client.Lock."""

    def __init__(self, client):
        self._client = client

    def __getattr__(self, name):
        return getattr(self._client, name)

    def Lock(self, path, identifier=None):
        return CuratorLock(self._client, path, identifier)


class CuratorSemaphore(Semaphore):
    """InterProcessSemaphoreV2: leases in PATH/leases, the lock in PATH/locks."""

    def __init__(self, client, path, identifier=None, max_leases=1):
        super().__init__(_CuratorLocks(client), path + "/leases", identifier, max_leases)
        self.lock_path = path + "/locks"


class SimpleQueue(Queue):
    """SimpleDistributedQueue, which passes over names that don't begin with "qn-"; it has no priorities."""

    prefix = "qn-"

    def put(self, value):
        self._check_put_arguments(value)
        self._ensure_paths()
        self.client.create(self.path + "/" + self.prefix, value, sequence=True)


class _Items:
    """DistributedQueue's bytes around an item: version 0x00010001, then 1 and length for each item, then 2."""

    @staticmethod
    def wrap(item):
        return struct.pack(">IBI", 0x00010001, 1, len(item)) + item + b"\x02"

    @staticmethod
    def unwrap(data):
        version, op, size = struct.unpack_from(">IBI", data)
        if version != 0x00010001 or op != 1 or len(data) != 10 + size or data[-1:] != b"\x02":
            raise ValueError("not one item: %r" % data)
        return data[9 : 9 + size]


class CuratorQueue(Queue):
    """DistributedQueue, DistributedPriorityQueue and DistributedIdQueue without lock safety, by what comes behind "queue-"."""

    prefix = "queue-"

    def put(self, value, behind=""):
        self._ensure_paths()
        self.client.create(self.path + "/" + self.prefix + behind, _Items.wrap(value), sequence=True)

    def get(self):
        data = super().get()
        return None if data is None else _Items.unwrap(data)


class CuratorLockingQueue(LockingQueue):
    """DistributedQueue of PATH/entries with the lock path PATH/taken."""

    entry = "queue"

    def put(self, value):
        self._ensure_paths()
        self.client.create(self._entries_path + "/queue-", _Items.wrap(value), sequence=True)

    def get(self, timeout=None):
        data = super().get(timeout)
        return None if data is None else _Items.unwrap(data)


class LongCounter(Counter):
    """DistributedAtomicLong: 8 bytes. With support_curator kazoo's own Counter has SharedCount's 4."""

    def _value(self):
        self._ensure_node()
        old, stat = self.client.get(self.path)
        return struct.unpack(">q", old)[0] if old else self.default, stat.version

    def _inner_change(self, value):
        self.pre_value, version = self._value()
        post_value = self.pre_value + value
        try:
            self.client.set(self.path, struct.pack(">q", post_value), version=version)
        except BadVersionError:
            raise ForceRetryError()
        self.post_value = post_value


class GroupParty(BaseParty):
    """GroupMember: the znode's name is the member, its data what it says."""

    def __init__(self, client, path, identifier, data):
        super().__init__(client, path)
        self.data = data
        self.create_path = path + "/" + identifier

    def members(self):
        found = {}
        for child in self._get_children():
            try:
                found[child] = self.client.get(self.path + "/" + child)[0]
            except NoNodeError:
                pass
        return found


class Discovery:
    """Curator's service discovery, of which kazoo has nothing: BASE/NAME/ID with JSON in it."""

    def __init__(self, client, base):
        self.client = client
        self.base = base

    def register(self, name, id_, address, port, payload):
        instance = {
            "name": name,
            "id": id_,
            "address": address,
            "port": port,
            "sslPort": None,
            "payload": payload,
            "registrationTimeUTC": 0,
            "serviceType": "DYNAMIC",
            "uriSpec": None,
            "enabled": True,
        }
        path = "%s/%s/%s" % (self.base, name, id_)
        self.client.create(path, json.dumps(instance).encode(), ephemeral=True, makepath=True)
        return path

    def instances(self, name):
        path = "%s/%s" % (self.base, name)
        return [json.loads(self.client.get(path + "/" + c)[0]) for c in self.client.get_children(path)]

