"""Lets many threads wait with one KazooClient, and prints how many were served, how many sessions
were lost, how often the client reconnected, and the seconds.

Usage: waiters.py KIND WAITERS TIMEOUT LIMIT HOST:PORT, the times in milliseconds
"""

import logging
import os
import sys
import threading
import time

from kazoo.client import KazooClient, KazooState
from kazoo.retry import KazooRetry

LEASES = 10
kind, n, timeout, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) / 1000, int(sys.argv[4]) / 1000
logging.basicConfig(level=logging.CRITICAL)
threading.stack_size(256 << 10)
states, served, failed = [], [], []

retry = {"max_tries": -1, "delay": 0.05, "max_delay": 0.2}
client = KazooClient(hosts=sys.argv[5], timeout=timeout, connection_retry=KazooRetry(**retry), command_retry=KazooRetry(**retry))
client.add_listener(states.append)
client.start(timeout=60)


def wait(i):
    try:
        if kind == "lock":
            with client.Lock("/waiters", str(i)):
                pass
        elif kind == "semaphore":
            with client.Semaphore("/waiters", str(i), max_leases=LEASES):
                pass
        else:
            client.Election("/waiters", str(i)).run(lambda: None)
        served.append(i)
    except Exception as e:
        failed.append(e)


begun = time.monotonic()
threads = []
for i in range(n):
    threads.append(threading.Thread(target=wait, args=(i,), daemon=True))
    threads[-1].start()
for t in threads:
    t.join(max(0, begun + limit - time.monotonic()))
seconds = time.monotonic() - begun
if failed:
    print(f"kazoo: {len(failed)} failed, the first with {failed[0]!r}", file=sys.stderr)
print(len(served), states.count(KazooState.LOST), states.count(KazooState.CONNECTED) - 1, seconds, flush=True)
os._exit(0)  # without those that still wait
