"""ZooKeeper servers for tests: they start in milliseconds, and break on purpose.

    with Server() as server:
        client = KazooClient(server.connect_string)

Servers run in one background process, gozkd-testkit, that the first of them starts and that ends with
the interpreter. They keep their data in memory and share nothing with each other. Errors are
TestkitError. Methods return when their effect is complete. All may be called from several threads.
"""

from __future__ import annotations

import atexit
import base64
import json
import os
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request

__all__ = ["Ensemble", "Fault", "Member", "Server", "TestkitError"]


class TestkitError(Exception):
    """A request that gozkd-testkit refused, with its reason."""

    __test__ = False  # pytest takes names that begin with Test for tests


class _Process:
    """The background process of this interpreter. A fork has a process of its own."""

    def __init__(self):
        self._lock = threading.Lock()
        self._pid = None  # of the interpreter that started it
        self._url = None

    def url(self) -> str:
        with self._lock:
            if self._pid != os.getpid():
                self._start()
            return self._url

    def _start(self):
        # With --stdin it ends with this interpreter, also if that is killed.
        child = subprocess.Popen([program(), "--stdin", "--log-level", "error"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        owner = os.getpid()

        def end():
            if os.getpid() == owner:
                child.stdin.close()
                child.wait()

        atexit.register(end)
        with child.stdout:
            self._url = child.stdout.readline().decode().strip()
        if not self._url:
            raise TestkitError("gozkd-testkit did not start: standard error has its reason")
        self._pid = owner


_process = _Process()


def program() -> str:
    """The path of gozkd-testkit: that of GOZKD_TESTKIT, that of this package, or that of PATH."""
    inside = os.path.join(os.path.dirname(__file__), "gozkd-testkit" + (".exe" if sys.platform == "win32" else ""))
    for path in os.environ.get("GOZKD_TESTKIT"), inside, shutil.which("gozkd-testkit"):
        if path and os.path.exists(path):
            return path
    raise TestkitError("there is no gozkd-testkit: install a wheel for this platform, or set GOZKD_TESTKIT to the program")


def _main() -> None:
    """The command gozkd-testkit."""
    words = [program(), *sys.argv[1:]]
    if sys.platform == "win32":  # where exec does not wait
        sys.exit(subprocess.call(words))
    os.execv(words[0], words)


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1e6)}us"


def _data(value):
    """A value of a tree in JSON: text, {"base64": ...} or None."""
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    return value


class Ensemble:
    """Servers that form an ensemble; Server is a single one.

    size is their number, tick their tickTime in seconds: session timeouts are 2 to 7,200 of these.
    Options are those of POST /servers: ports, dirs, tls, users, down, config.
    """

    def __init__(self, size: int = 3, tick: float = 0.5, **options):
        at = _process.url()
        started = self._send(at + "/servers", "POST", {"ensemble": size, "tick": _duration(tick), **options})
        self._at = f"{at}/servers/{started['id']}"
        #: the addresses of all members, as clients take them
        self.connect_string: str = started["client"]
        #: all members, in the order of their numbers, which begin with 1
        self.members: list[Member] = [Member(self, m["id"], m["client"]) for m in started["members"]]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self) -> None:
        """Ends the servers and their data. Further calls do nothing."""
        at, self._at = self._at, None
        if at is not None:
            self._send(at, "DELETE")

    def member(self, number: int) -> Member:
        return self.members[number - 1]

    def leader(self) -> Member:
        """The member that leads; waits until there is one."""
        return self.member(self._ask("GET", "/leader")["id"])

    def stop(self) -> None:
        """Stops all members; start brings them back with their ports and data."""
        self._ask("POST", "/stop")

    def start(self) -> None:
        """Starts all members that are down."""
        self._ask("POST", "/start")

    def partition(self, *groups) -> None:
        """Cuts the links between members of different groups of numbers, such as [1], [2, 3]."""
        self._ask("POST", "/partition", {"groups": [list(g) for g in groups]})

    def heal(self) -> None:
        """Restores all links."""
        self._ask("POST", "/heal")

    def drop_reply(self, op: str, path: str | None = None, times: int = 1, session: int | None = None) -> Fault:
        """Carries requests out, and closes the connection in place of the reply."""
        return self._arm("dropReply", op, path, times, session)

    def delay(self, op: str, seconds: float, path: str | None = None, times: int = 1, session: int | None = None) -> Fault:
        """Sends replies that much later."""
        return self._arm("delay", op, path, times, session, delay=_duration(seconds))

    def fail(self, op: str, code: int | str, path: str | None = None, times: int = 1, session: int | None = None) -> Fault:
        """Answers requests with an error, such as -101 or "NoNode", and does not carry them out."""
        return self._arm("fail", op, path, times, session, code=code)

    def _arm(self, kind, op, path, times, session, **more) -> Fault:
        body = {"kind": kind, "op": op, "times": times, **more}
        if path is not None:
            body["path"] = path
        if session is not None:
            body["session"] = hex(session)
        return Fault(self, self._ask("POST", "/faults", body)["id"])

    def disarm(self) -> None:
        """Removes all faults."""
        self._ask("DELETE", "/faults")

    def sessions(self) -> list[dict]:
        """All sessions: id, timeoutMs, connected, member (0: not connected), ephemerals."""
        return [{**s, "id": int(s["id"], 16)} for s in self._ask("GET", "/sessions")]

    def expire_session(self, session: int) -> None:
        """Ends a session, whose client is told that it has expired."""
        self._ask("POST", f"/sessions/{hex(session)}/expire")

    def cut(self, session: int) -> None:
        """Breaks the connection of a session, which lives on."""
        self._ask("POST", f"/sessions/{hex(session)}/disconnect")

    def advance(self, seconds: float) -> None:
        """Lets time pass for sessions, TTLs and containers. Connected clients count as having pinged."""
        self._ask("POST", "/advance", {"by": _duration(seconds)})

    def tree(self, path: str = "/") -> dict[str, str | bytes | None]:
        """The data of a znode and of all below it, by path: text if it is UTF-8."""
        found = self._ask("GET", "/tree?" + urllib.parse.urlencode({"path": path}))
        return {p: base64.b64decode(d["base64"]) if isinstance(d, dict) else d for p, d in found.items()}

    def load(self, tree: dict[str, str | bytes | None]) -> None:
        """Creates these znodes and missing ones above them, or sets their data; others stay."""
        self._ask("PUT", "/tree", {path: _data(value) for path, value in tree.items()})

    def snapshot(self) -> int:
        """Saves all znodes, for reset."""
        return self._ask("POST", "/snapshot")["id"]

    def reset(self, snapshot: int) -> None:
        """Restores the znodes of a snapshot; sessions stay. Removes all faults."""
        self.disarm()
        self._ask("POST", "/rewind", {"id": snapshot})

    def renew(self, snapshot: int) -> None:
        """Makes the servers like new ones with the znodes of a snapshot: all run, without faults, partitions and sessions."""
        self._ask("POST", "/rewind", {"id": snapshot, "all": True})

    def certificate(self, name: str) -> dict[str, str]:
        """The ca, cert and key, as PEM, of a client CN=name of servers with the option tls."""
        return self._ask("POST", "/certificate", {"name": name})

    def dump(self) -> str:
        """Members, sessions and znodes, for a person."""
        return self._ask("GET", "/dump", text=True)

    def _ask(self, method, path, body=None, text=False):
        if self._at is None:
            raise TestkitError("these servers are closed")
        return self._send(self._at + path, method, body, text)

    @staticmethod
    def _send(url, method, body=None, text=False):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        try:
            # Not through a proxy of the environment: the servers are on this machine.
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
                return answer.read().decode() if text else json.load(answer)
        except urllib.error.HTTPError as e:
            raise TestkitError(json.load(e)["error"]) from None


class Server(Ensemble):
    """A single server."""

    def __init__(self, tick: float = 0.5, **options):
        super().__init__(1, tick, **options)

    def restart(self) -> None:
        self.members[0].restart()

    def kill(self) -> None:
        """Ends it like kill -9."""
        self.members[0].kill()


class Member:
    """A server of an ensemble."""

    def __init__(self, ensemble: Ensemble, number: int, address: str):
        self._ensemble = ensemble
        self.number = number
        self.address = address  #: host:port for clients

    def __repr__(self):
        return f"<member {self.number} at {self.address}>"

    def _do(self, what):
        return self._ensemble._ask("POST", f"/members/{self.number}/{what}")

    def status(self) -> dict:
        """state (running, paused, down), serving, mode, leader, zxid; without waiting."""
        return self._ensemble._ask("GET", "/status")["members"][self.number - 1]

    def stop(self) -> None:
        """Stops it cleanly; a leader hands over its lead."""
        self._do("stop")

    def start(self) -> None:
        """Starts it again, with its port and data."""
        self._do("start")

    def restart(self) -> None:
        self._do("restart")

    def kill(self) -> None:
        """Ends it like kill -9; what it acknowledged is there after the next start."""
        self._do("kill")

    def pause(self) -> None:
        """Stops it like kill -STOP: connections stay open, and nothing is answered."""
        self._do("pause")

    def resume(self) -> None:
        self._do("resume")

    def partition(self) -> None:
        """Cuts it off from clients and members: nothing arrives, and no connection breaks."""
        self._do("partition")

    def heal(self) -> None:
        self._do("heal")

    def disconnect(self) -> None:
        """Breaks the connections of its clients, whose sessions live on."""
        self._do("disconnect")


class Fault:
    """A fault that waits for requests."""

    def __init__(self, ensemble: Ensemble, number: int):
        self._ensemble, self._at = ensemble, f"/faults/{number}"

    def count(self) -> int:
        """How often it has happened."""
        return self._ensemble._ask("GET", self._at)["count"]

    def wait(self, seconds: float = 5) -> bool:
        """Waits until it has happened as often as it should; False: it has not."""
        return self._ensemble._ask("GET", f"{self._at}?wait={_duration(seconds)}")["done"]

    def remove(self) -> None:
        self._ensemble._ask("DELETE", self._at)
