"""Lets many threads wait with one KazooClient, and prints how many were served, how many sessions
were lost, how often the client reconnected, and the seconds, as JSON.

    python waiters.py ADDRESS PATH KIND SECONDS WAITERS, where KIND is lock, semaphore or election
"""

import json
import logging
import os
import sys
import threading
import time

from kazoo.client import KazooClient, KazooState
from kazoo.retry import KazooRetry

LEASES = 10
address, path, kind, limit, n = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5])
logging.basicConfig(level=logging.CRITICAL)
threading.stack_size(256 << 10)
states, served, failed = [], [], []

retry = {"max_tries": -1, "delay": 0.05, "max_delay": 0.2}
client = KazooClient(hosts=address, timeout=10, connection_retry=KazooRetry(**retry), command_retry=KazooRetry(**retry))
client.add_listener(states.append)
client.start(timeout=60)


def wait(i):
    try:
        if kind == "lock":
            with client.Lock(path, str(i)):
                pass
        elif kind == "semaphore":
            with client.Semaphore(path, str(i), max_leases=LEASES):
                pass
        else:
            client.Election(path, str(i)).run(lambda: None)
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
print(json.dumps({"served": len(served), "lost": states.count(KazooState.LOST), "reconnects": states.count(KazooState.CONNECTED) - 1,
                  "seconds": seconds}), flush=True)
os._exit(0)  # without those that still wait
