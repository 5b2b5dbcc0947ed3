"""client.py is the client of tooz.go: client.py SERVERS NAME. It reports and judges nothing.

It joins a group, stands for election and works in a lock until there is something to read at stdin."""

import select
import sys
import time

from tooz import ToozError, coordination


def say(*words):
    print(*words, flush=True)


def milliseconds():
    return int(time.time() * 1000)


def main(servers, name):
    coordinator = coordination.get_coordinator("kazoo://" + servers + "?timeout=6", name.encode())
    coordinator.start(start_heart=True)
    try:
        coordinator.create_group(b"group").get()
    except coordination.GroupAlreadyExist:
        pass
    coordinator.watch_join_group(b"group", lambda e: say("joined", e.member_id.decode()))
    coordinator.watch_leave_group(b"group", lambda e: say("left", e.member_id.decode()))
    coordinator.watch_elected_as_leader(b"group", lambda e: say("elected", e.member_id.decode()))
    coordinator.join_group(b"group", capabilities=name.encode()).get()
    lock = coordinator.get_lock(b"lock")
    number = 0
    while not select.select([sys.stdin], [], [], 0.005)[0]:
        try:
            coordinator.run_watchers()
            coordinator.run_elect_coordinator()
            with lock:
                say("begin", "lock", milliseconds())
                time.sleep(0.001)
                say("end", "lock", milliseconds())
        except ToozError as e:
            say("retry", e)
            continue
        say("acked", name + "/" + str(number))
        number += 1
    say("members", *sorted(m.decode() for m in coordinator.get_members(b"group").get()))
    leader = coordinator.get_leader(b"group").get()
    say("leader", leader.decode() if leader else "")
    coordinator.stop()


main(*sys.argv[1:])
