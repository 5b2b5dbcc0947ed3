package org.apache.zookeeper.test;

import java.io.File;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.zookeeper.PortAssignment;
import org.apache.zookeeper.server.quorum.ExternalPeer;
import org.apache.zookeeper.server.quorum.QuorumPeer;
import org.apache.zookeeper.server.quorum.QuorumPeer.QuorumServer;
import org.junit.jupiter.api.Assertions;

/** Stands before the tests' class of this name. The members are processes. */
public class QuorumUtil {
    public static class PeerStruct {
        public int id;
        public QuorumPeer peer;
        public File dataDir;
        public int clientPort;
    }

    public final int N;
    public final int ALL;
    public boolean disableJMXTest;
    private final int syncLimit;
    private final Map<Long, QuorumServer> view = new HashMap<>();
    private final List<PeerStruct> peers = new ArrayList<>();
    private boolean localSessions;

    public QuorumUtil(int n, int syncLimit) {
        N = n;
        ALL = 2 * n + 1;
        this.syncLimit = syncLimit;
        ClientBase.setupTestEnv();
        try {
            for (int i = 1; i <= ALL; i++) {
                PeerStruct p = new PeerStruct();
                p.id = i;
                p.dataDir = ClientBase.createTmpDir();
                p.clientPort = PortAssignment.unique();
                peers.add(p);
                view.put((long) i, new QuorumServer(i, address(PortAssignment.unique()), address(PortAssignment.unique()), address(p.clientPort),
                    QuorumPeer.LearnerType.PARTICIPANT));
            }
            for (PeerStruct p : peers) {
                create(p);
            }
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    public QuorumUtil(int n) {
        this(n, 3);
    }

    static InetSocketAddress address(int port) {
        return new InetSocketAddress("127.0.0.1", port);
    }

    private void create(PeerStruct p) throws IOException {
        p.peer = new ExternalPeer(view, p.dataDir, p.clientPort, p.id, 2000, 3, syncLimit);
        p.peer.enableLocalSessions(localSessions);
    }

    public PeerStruct getPeer(int id) {
        PeerStruct p = struct(id);
        ((ExternalPeer) p.peer).refresh(); // tests look at its fields
        return p;
    }

    private PeerStruct struct(int id) {
        return peers.get(id - 1);
    }

    public void enableLocalSession(boolean enabled) {
        localSessions = enabled;
    }

    public void startAll() throws IOException {
        shutdownAll();
        startFirst(ALL);
    }

    public void startQuorum() throws IOException {
        shutdownAll();
        startFirst(N + 1);
    }

    private void startFirst(int n) throws IOException {
        for (int i = 1; i <= n; i++) {
            start(i);
        }
        for (int i = 1; i <= n; i++) {
            awaitUp(i);
        }
    }

    public void start(int id) throws IOException {
        create(struct(id));
        struct(id).peer.start();
    }

    public void restart(int id) throws IOException {
        start(id);
        awaitUp(id);
    }

    public void startThenShutdown(int id) throws IOException {
        restart(id);
        shutdown(id);
    }

    private void awaitUp(int id) {
        Assertions.assertTrue(ClientBase.waitForServerUp(getConnectionStringForServer(id), ClientBase.CONNECTION_TIMEOUT), "waiting for server up");
    }

    public void shutdownAll() {
        for (PeerStruct p : peers) {
            shutdown(p.id);
        }
    }

    public void shutdown(int id) {
        struct(id).peer.shutdown();
    }

    public String getConnString() {
        StringBuilder b = new StringBuilder();
        for (PeerStruct p : peers) {
            b.append(b.length() == 0 ? "" : ",").append(getConnectionStringForServer(p.id));
        }
        return b.toString();
    }

    public String getConnectString(QuorumPeer peer) {
        return "127.0.0.1:" + peer.getClientPort();
    }

    public boolean allPeersAreConnected() {
        return peers.stream().allMatch(p -> p.peer.getPeerState() != QuorumPeer.ServerState.LOOKING);
    }

    public QuorumPeer getLeaderQuorumPeer() {
        return struct(getLeaderServer()).peer;
    }

    public List<QuorumPeer> getFollowerQuorumPeers() {
        List<QuorumPeer> list = new ArrayList<>();
        for (PeerStruct p : peers) {
            if (p.id != leaderId()) {
                list.add(p.peer);
            }
        }
        return list;
    }

    public void tearDown() throws Exception {
        shutdownAll();
    }

    public int getLeaderServer() {
        int id = leaderId();
        Assertions.assertTrue(id > 0, "Leader server not found.");
        return id;
    }

    public boolean leaderExists() {
        return leaderId() > 0;
    }

    private int leaderId() {
        for (PeerStruct p : peers) {
            if (p.peer.getPeerState() == QuorumPeer.ServerState.LEADING) {
                return p.id;
            }
        }
        return 0;
    }

    public String getConnectionStringForServer(int id) {
        return "127.0.0.1:" + struct(id).clientPort;
    }
}
