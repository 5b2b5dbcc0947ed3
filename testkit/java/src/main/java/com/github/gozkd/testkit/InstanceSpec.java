package com.github.gozkd.testkit;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;

/** Describes a server, with the names of Curator's class. A port of -1 is a free one, which the server reserves. */
public class InstanceSpec {
    private static final AtomicInteger NEXT = new AtomicInteger(1);

    private final File dataDirectory;
    private volatile boolean onDisk;
    private volatile int port;
    private final int electionPort;
    private final int quorumPort;
    private final boolean deleteDataDirectoryOnClose;
    private volatile int serverId;
    private final int tickTime;
    private final int maxClientCnxns;
    private boolean tls;

    public InstanceSpec(File dataDirectory, int port, int electionPort, int quorumPort,
            boolean deleteDataDirectoryOnClose, int serverId) {
        this(dataDirectory, port, electionPort, quorumPort, deleteDataDirectoryOnClose, serverId, -1, -1);
    }

    /** A number of -1 is the default. */
    public InstanceSpec(File dataDirectory, int port, int electionPort, int quorumPort,
            boolean deleteDataDirectoryOnClose, int serverId, int tickTime, int maxClientCnxns) {
        this(dataDirectory, port, electionPort, quorumPort, deleteDataDirectoryOnClose, serverId, tickTime,
                maxClientCnxns, null);
    }

    public InstanceSpec(File dataDirectory, int port, int electionPort, int quorumPort,
            boolean deleteDataDirectoryOnClose, int serverId, int tickTime, int maxClientCnxns,
            Map<String, Object> customProperties) {
        this(dataDirectory, port, electionPort, quorumPort, deleteDataDirectoryOnClose, serverId, tickTime,
                maxClientCnxns, customProperties, null);
    }

    /** Servers listen on 127.0.0.1; other names of hosts are refused. */
    public InstanceSpec(File dataDirectory, int port, int electionPort, int quorumPort,
            boolean deleteDataDirectoryOnClose, int serverId, int tickTime, int maxClientCnxns,
            Map<String, Object> customProperties, String hostname) {
        if (hostname != null && !hostname.equals("localhost") && !hostname.equals(getHostname())) {
            throw new IllegalArgumentException("test servers listen on 127.0.0.1, not on " + hostname);
        }
        if (customProperties != null && !customProperties.isEmpty()) {
            throw new IllegalArgumentException("test servers have no custom properties: " + customProperties.keySet());
        }
        try {
            this.dataDirectory = dataDirectory != null ? dataDirectory : Files.createTempDirectory("gozkd-").toFile();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        this.onDisk = dataDirectory != null;
        this.port = port;
        this.electionPort = electionPort >= 0 ? electionPort : getRandomPort();
        this.quorumPort = quorumPort >= 0 ? quorumPort : getRandomPort();
        this.deleteDataDirectoryOnClose = deleteDataDirectoryOnClose;
        this.serverId = serverId >= 0 ? serverId : NEXT.getAndIncrement();
        this.tickTime = tickTime;
        this.maxClientCnxns = maxClientCnxns;
    }

    /** A spec with a temporary directory and a free port. */
    public static InstanceSpec newInstanceSpec() { return new InstanceSpec(null, -1, -1, -1, true, -1); }

    /** Makes its servers take TLS on their ports, beside plain connections; see Servers.clientProperties. */
    public InstanceSpec withTls() {
        tls = true;
        return this;
    }

    /** Lets the numbers of the next specs begin with 1. */
    public static void reset() { NEXT.set(1); }

    /** A port that was free a moment ago. */
    public static int getRandomPort() {
        try (ServerSocket server = new ServerSocket(0)) {
            return server.getLocalPort();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    public int getServerId() { return serverId; }

    public File getDataDirectory() { return dataDirectory; }

    public int getPort() {
        if (port < 0) {
            port = getRandomPort();
        }
        return port;
    }

    /** Nothing listens there: the members of an ensemble are in one process. */
    public int getElectionPort() { return electionPort; }

    /** Nothing listens there, either. */
    public int getQuorumPort() { return quorumPort; }

    void assign(int port) { this.port = port; }

    /** Is about the server of another spec from now on. */
    void takeOver(InstanceSpec before) {
        port = before.port;
        onDisk = before.onDisk;
    }

    /** The members of an ensemble have the numbers from 1 on. */
    void number(int id) { serverId = id; }

    /** 0: none yet. */
    int assigned() { return Math.max(port, 0); }

    public String getConnectString() { return getHostname() + ":" + getPort(); }

    public String getHostname() { return "127.0.0.1"; }

    public int getTickTime() { return tickTime; }

    public int getMaxClientCnxns() { return maxClientCnxns; }

    public Map<String, Object> getCustomProperties() { return Map.of(); }

    public boolean deleteDataDirectoryOnClose() { return deleteDataDirectoryOnClose; }

    /** Whether the data is in the directory: without one that was given it is in memory. */
    boolean onDisk() { return onDisk; }

    boolean tls() { return tls; }

    @Override
    public String toString() {
        return "InstanceSpec{" + getConnectString() + ", " + dataDirectory + ", serverId=" + serverId + "}";
    }

    /** Two specs are equal if they have the same port. */
    @Override
    public boolean equals(Object o) {
        return this == o || o instanceof InstanceSpec && port >= 0 && port == ((InstanceSpec) o).port;
    }

    /** The same for all: a spec in a map gets its port later. */
    @Override
    public int hashCode() { return 0; }
}
