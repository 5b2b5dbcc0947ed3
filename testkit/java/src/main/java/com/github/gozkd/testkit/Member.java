package com.github.gozkd.testkit;

import java.util.List;
import java.util.Map;

/** A server of an ensemble, or a single one. Methods return when their effect is complete. */
public class Member {
    private final Servers servers;
    final InstanceSpec spec;
    private final int number;

    Member(Servers servers, InstanceSpec spec, int number) {
        this.servers = servers;
        this.spec = spec;
        this.number = number;
    }

    /** Its number in the ensemble, from 1. */
    public int number() { return number; }

    public InstanceSpec getInstanceSpec() { return spec; }

    /** state (running, paused, down), serving, mode, leader, zxid; without waiting. */
    public Map<String, Object> status() {
        List<Map<String, Object>> all = servers.get("/status", "members");
        return all.get(number - 1);
    }

    boolean isDown() { return status().get("state").equals("down"); }

    /** Stops it cleanly; a leader hands over its lead. */
    public void stop() { ask("stop"); }

    /** Starts it again, with its port and data. */
    public void start() { ask("start"); }

    public void restart() { ask("restart"); }

    /** Ends it like kill -9; what it acknowledged is there after the next start. */
    public void kill() { ask("kill"); }

    /** Stops it like kill -STOP: connections stay open, and nothing is answered. */
    public void pause() { ask("pause"); }

    public void resume() { ask("resume"); }

    /** Cuts it off from clients and members: nothing arrives, and no connection breaks. */
    public void partition() { ask("partition"); }

    public void heal() { ask("heal"); }

    /** Breaks the connections of its clients, whose sessions live on. */
    public void disconnect() { ask("disconnect"); }

    private void ask(String what) { servers.ask("POST", "/members/" + number + "/" + what, null); }

    @Override
    public String toString() { return "member " + number + " at " + spec.getConnectString(); }
}
