"""kazoo on an ensemble that loses its quorum and finds it again. See test/compat/modes.

Usage: modes.py HOST:PORT,...

Begins a stage when it reads a line, prints what it sees, and a dot at the end of the stage.
"""

import logging
import sys
import time

from kazoo.client import KazooClient
from kazoo.exceptions import ZookeeperError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KeeperState

logging.disable(logging.CRITICAL)
HOSTS = sys.argv[1]
WAIT = 60
# By default the pauses grow beyond the session timeout, and the session then expires or not, by chance.
RETRY = {"max_tries": -1, "max_delay": 1}


def connect(read_only, wait=WAIT):
    client = KazooClient(hosts=HOSTS, timeout=10, read_only=read_only, connection_retry=RETRY)
    client.start(timeout=wait)
    return client


def until(client, state):
    end = time.time() + WAIT
    while client.client_state != state:
        if time.time() > end:
            return "%s, not %s" % (client.client_state, state)
        time.sleep(0.05)
    return state


def outcome(f, *args, **kwargs):
    try:
        f(*args, **kwargs)
    except ZookeeperError as e:
        return type(e).__name__
    except KazooTimeoutError:
        return "not connected"
    return "ok"


def say(*words):
    print(*words, flush=True)


def stage():
    say(".")
    sys.stdin.readline()


sys.stdin.readline()
writer = connect(False)
say("create", outcome(writer.create, "/kazoo", b"1"))
say("ephemeral", outcome(writer.create, "/kazoo-e", b"1", ephemeral=True))
stayer = connect(True)
states = []
stayer.add_listener(lambda s: states.append(str(s)))
say("read-only client with a quorum", stayer.client_state)
stage()

say("client that had a local session", until(stayer, KeeperState.CONNECTED_RO), "lost" if "LOST" in states else "not lost")
fresh = connect(True)
session = fresh.client_id[0]
say("read-only client without a quorum", until(fresh, KeeperState.CONNECTED_RO))
events = []
say("get", fresh.get("/kazoo", watch=lambda e: events.append(e.type))[0].decode())
say("children", "kazoo" in fresh.get_children("/"))
say("exists", fresh.exists("/none") is not None)
say("set", outcome(fresh.set, "/kazoo", b"2"))
say("create", outcome(fresh.create, "/kazoo-2"))
say("sync", outcome(fresh.sync, "/kazoo"))
say("client that wants to write", outcome(connect, False, 3))
stage()

say("the read-only client", until(fresh, KeeperState.CONNECTED), "new session" if fresh.client_id[0] != session else "same session")
say("the other", until(stayer, KeeperState.CONNECTED))
written = outcome(fresh.set, "/kazoo", b"3")
stayer.retry(stayer.sync, "/kazoo")  # its server may lag
say("set", written, stayer.retry(stayer.get, "/kazoo")[0].decode())
say("the writer's znode", writer.retry(writer.exists, "/kazoo-e") is not None)
for client in (writer, stayer, fresh):
    client.stop()
    client.close()
say(".")
