"""Counts under kazoo's lock until its standard input is closed, and prints a line for what it did.

Usage: locks.py HOST:PORT,...

A line is "done", "repeated" after a lost connection, "lost" if a session is lost, or "failed" and the
reason.
"""

import logging
import sys
import threading
import time

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import ConnectionLoss, SessionExpiredError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import KazooRetry

LOCK, COUNTER = "/upgrade-kazoo-lock", "/upgrade-kazoo-counter"
SURVIVED = (ConnectionLoss, KazooTimeoutError)

logging.basicConfig(level=logging.CRITICAL)
stopping = threading.Event()
printing = threading.Lock()


def say(*words):
    with printing:
        print(*words, flush=True)


def insist(request):
    """Repeats a request until its connection does not fail."""
    while True:
        try:
            return request()
        except SURVIVED:
            say("repeated")
            time.sleep(0.01)


def count(client):
    with client.Lock(LOCK, "me"):  # kazoo repeats its own requests

        def read():
            client.sync(COUNTER)
            data, stat = client.get(COUNTER)
            return int(data), stat.version

        before, version = insist(read)
        tried = False

        def change():
            nonlocal tried
            if tried:
                now, _ = read()
                if now == before + 1:
                    return
                if now != before:
                    raise AssertionError(f"the counter went from {before} to {now} under a lock")
            tried = True
            client.set(COUNTER, str(before + 1).encode(), version)

        insist(change)


def work():
    client = KazooClient(hosts=sys.argv[1], timeout=10, connection_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=0.2),
                         command_retry=KazooRetry(max_tries=-1, delay=0.05, max_delay=0.2))
    client.add_listener(lambda state: say("lost") if state == KazooState.LOST and not stopping.is_set() else None)
    client.start(timeout=60)
    client.ensure_path(LOCK)
    client.ensure_path(COUNTER)
    with client.Lock(LOCK, "me"):
        if insist(lambda: client.get(COUNTER))[0] == b"":
            insist(lambda: client.set(COUNTER, b"0"))
    while not stopping.is_set():
        try:
            count(client)
            say("done")
        except SURVIVED:
            say("repeated")
        except SessionExpiredError:
            say("lost")
        except Exception as e:  # the line tells it
            say("failed", repr(e))
            time.sleep(0.1)
    client.stop()
    client.close()


workers = [threading.Thread(target=work) for _ in range(2)]
for w in workers:
    w.start()
sys.stdin.read()
stopping.set()
for w in workers:
    w.join()
