package com.github.gozkd.testkit;

import java.io.File;
import java.util.List;

/** A single server, with the constructors and methods of Curator's class, and faults. */
public class TestingServer extends Servers {
    /** A server on a free port. */
    public TestingServer() throws Exception { this(true); }

    public TestingServer(boolean start) throws Exception { this(-1, start); }

    public TestingServer(int port) throws Exception { this(port, true); }

    public TestingServer(int port, boolean start) throws Exception { this(port, null, start); }

    public TestingServer(int port, File tempDirectory) throws Exception { this(port, tempDirectory, true); }

    /** A port of -1 is a free one. The directory, null for a new one, may have the data of a stopped server. */
    public TestingServer(int port, File tempDirectory, boolean start) throws Exception {
        this(new InstanceSpec(tempDirectory, port, -1, -1, true, -1), start);
    }

    public TestingServer(InstanceSpec spec, boolean start) throws Exception { super(List.of(spec), start); }

    public int getPort() { return member().spec.getPort(); }

    public File getTempDirectory() { return member().spec.getDataDirectory(); }

    /** Stops it if it runs, and starts it. */
    public void restart() throws Exception { member().restart(); }

    /** Ends it like kill -9; start and restart bring it back with what it acknowledged. */
    public void kill() { member().kill(); }

    /** For pause, partition and what else members can. */
    public Member member() { return members.get(0); }
}
