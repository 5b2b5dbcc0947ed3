package com.github.gozkd.testkit;

import java.time.Duration;

/** A fault that waits for requests. */
public final class Fault {
    private final Servers servers;
    private final String at;

    Fault(Servers servers, long id) {
        this.servers = servers;
        this.at = "/faults/" + id;
    }

    /** How often it has happened. */
    public long count() { return servers.<Number>get(at, "count").longValue(); }

    /** Waits until it has happened as often as it should; false: it has not. */
    public boolean await(Duration atMost) { return servers.get(at + "?wait=" + Servers.micros(atMost), "done"); }

    public void remove() { servers.ask("DELETE", at, null); }
}
