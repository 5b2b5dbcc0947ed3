"""What bench recipes measures of kazoo: the rows of bench/recipes.go, run by one process.

    python peer.py ADDRESS ROOT ROW SECONDS WARM

It prints {"n": operations, "all": with the unmeasured ones, "seconds": ..., "p50": microseconds, "p99": microseconds}.
"""

import json
import os
import sys
import threading
import time

from kazoo.client import KazooClient


def main():
    address, root, row, seconds, warm = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]), float(sys.argv[5])
    clients = []
    for _ in range({"lock": 1, "handover": 11, "leadership": 3}.get(row, 8)):
        c = KazooClient(hosts=address, timeout=10)
        c.start()
        clients.append(c)
    begin = time.monotonic() + warm
    end = begin + seconds
    if row in ("lock", "handover"):
        result = locks(clients, root + "/lock", row == "handover", begin, end)
    elif row == "leadership":
        result = elections(clients, root + "/leader", begin, end)
    elif row == "queue":
        result = queue(clients, root + "/queue", begin, end)
    else:
        sys.exit(f"no row {row}")
    result["seconds"] = seconds
    print(json.dumps(result), flush=True)
    os._exit(0)  # the sessions end with the connections


def locks(clients, path, handover, begin, end):
    times, released, done = [], [0.0], [0] * len(clients)

    def work(i, client):
        lock = client.Lock(path)
        while time.monotonic() < end:
            began = time.monotonic()
            lock.acquire()
            now = time.monotonic()
            if handover and released[0] > begin:
                times.append(now - released[0])
            released[0] = time.monotonic()
            lock.release()
            done[i] += 1
            if not handover and began > begin:
                times.append(time.monotonic() - began)

    return run(work, clients, times, done)


def elections(clients, path, begin, end):
    times, closed, done = [], [0.0], [0] * len(clients)

    def work(i, client):
        def lead():  # the leadership ends when lead has returned
            if closed[0] > begin:
                times.append(time.monotonic() - closed[0])
            done[i] += 1
            closed[0] = time.monotonic()

        while time.monotonic() < end:
            client.Election(path, "x").run(lead)

    return run(work, clients, times, done)


def run(work, clients, times, done):
    threads = [threading.Thread(target=work, args=(i, c)) for i, c in enumerate(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    times.sort()
    return {"n": len(times), "all": sum(done), "p50": times[len(times) // 2] * 1e6, "p99": times[len(times) * 99 // 100] * 1e6}


def queue(clients, path, begin, end):
    item, counts = b"x" * 100, []

    def produce(client):
        q = client.Queue(path)
        while True:
            q.put(item)

    def consume(client):
        q, mine = client.Queue(path), [0, 0]  # measured, all
        counts.append(mine)
        while True:
            if q.get() is None:
                time.sleep(0.001)  # kazoo's queue has no blocking get
                continue
            mine[1] += 1
            if begin < time.monotonic() < end:
                mine[0] += 1

    for i, c in enumerate(clients):
        threading.Thread(target=produce if i % 2 == 0 else consume, args=(c,), daemon=True).start()
    time.sleep(max(0.0, end - time.monotonic()))
    return {"n": sum(c[0] for c in counts), "all": sum(c[1] for c in counts)}


main()
