package org.apache.zookeeper.test;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.zookeeper.PortAssignment;
import org.apache.zookeeper.TestableZooKeeper;
import org.apache.zookeeper.server.quorum.ExternalPeer;
import org.apache.zookeeper.server.quorum.QuorumPeer;
import org.apache.zookeeper.server.quorum.QuorumPeer.LearnerType;
import org.apache.zookeeper.server.quorum.QuorumPeer.QuorumServer;
import org.apache.zookeeper.server.quorum.QuorumPeer.ServerState;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.BeforeEach;

/** Stands before the tests' class of this name. The five members are processes. */
public class QuorumBase extends ClientBase {
    protected static final String LOCALADDR = "127.0.0.1";

    File s1dir, s2dir, s3dir, s4dir, s5dir;
    QuorumPeer s1, s2, s3, s4, s5;
    protected int port1, port2, port3, port4, port5;
    protected int portLE1, portLE2, portLE3, portLE4, portLE5;
    protected int portClient1, portClient2, portClient3, portClient4, portClient5;
    protected boolean localSessionsEnabled;
    protected boolean localSessionsUpgradingEnabled;
    private boolean withObservers;

    @BeforeEach
    @Override
    public void setUp() throws Exception {
        setUp(false, true);
    }

    /** An oracle decides only for ensembles of two: it changes nothing here. */
    protected void setUp(boolean withObservers, boolean withOracle) throws Exception {
        setupTestEnv();
        setUpAll();
        port1 = PortAssignment.unique();
        port2 = PortAssignment.unique();
        port3 = PortAssignment.unique();
        port4 = PortAssignment.unique();
        port5 = PortAssignment.unique();
        portLE1 = PortAssignment.unique();
        portLE2 = PortAssignment.unique();
        portLE3 = PortAssignment.unique();
        portLE4 = PortAssignment.unique();
        portLE5 = PortAssignment.unique();
        portClient1 = PortAssignment.unique();
        portClient2 = PortAssignment.unique();
        portClient3 = PortAssignment.unique();
        portClient4 = PortAssignment.unique();
        portClient5 = PortAssignment.unique();
        hostPort = "";
        for (int port : clientPorts()) {
            hostPort += (hostPort.isEmpty() ? "" : ",") + LOCALADDR + ":" + port;
        }
        s1dir = createTmpDir();
        s2dir = createTmpDir();
        s3dir = createTmpDir();
        s4dir = createTmpDir();
        s5dir = createTmpDir();
        startServers(withObservers, withOracle);
    }

    private int[] clientPorts() {
        return new int[] {portClient1, portClient2, portClient3, portClient4, portClient5};
    }

    void startServers() throws Exception {
        startServers(false, true);
    }

    void startServers(boolean withObservers, boolean withOracle) throws Exception {
        this.withObservers = withObservers;
        setupServers();
        for (QuorumPeer p : getPeerList()) {
            p.enableLocalSessions(localSessionsEnabled);
            p.enableLocalSessionsUpgrading(localSessionsUpgradingEnabled);
            p.start();
        }
        for (String hp : hostPort.split(",")) {
            Assertions.assertTrue(waitForServerUp(hp, CONNECTION_TIMEOUT), "waiting for server up");
        }
    }

    public void setupServers() throws IOException {
        for (int i = 1; i <= 5; i++) {
            setupServer(i);
        }
    }

    public void setupServer(int i) throws IOException {
        int[] quorum = {port1, port2, port3, port4, port5};
        int[] election = {portLE1, portLE2, portLE3, portLE4, portLE5};
        Map<Long, QuorumServer> peers = new HashMap<>();
        for (int k = 1; k <= 5; k++) {
            peers.put((long) k, new QuorumServer(k, QuorumUtil.address(quorum[k - 1]), QuorumUtil.address(election[k - 1]),
                QuorumUtil.address(clientPorts()[k - 1]), withObservers && k > 3 ? LearnerType.OBSERVER : LearnerType.PARTICIPANT));
        }
        File dir = Arrays.asList(s1dir, s2dir, s3dir, s4dir, s5dir).get(i - 1);
        QuorumPeer p = new ExternalPeer(peers, dir, clientPorts()[i - 1], i, 2000, 3, 3);
        switch (i) {
            case 1: s1 = p; break;
            case 2: s2 = p; break;
            case 3: s3 = p; break;
            case 4: s4 = p; break;
            default: s5 = p;
        }
    }

    public int getLeaderIndex() {
        return getPeerList().indexOf(getLeaderQuorumPeer());
    }

    public int getLeaderClientPort() {
        QuorumPeer p = getLeaderQuorumPeer();
        return p == null ? -1 : p.getClientPort();
    }

    public QuorumPeer getLeaderQuorumPeer() {
        return first(ServerState.LEADING);
    }

    private QuorumPeer first(ServerState state) {
        for (QuorumPeer p : getPeerList()) {
            if (p.getPeerState() == state) {
                return p;
            }
        }
        return null;
    }

    public QuorumPeer getFirstObserver() {
        return withObservers ? s4 : null;
    }

    public int getFirstObserverClientPort() {
        return withObservers ? portClient4 : -1;
    }

    public String getPeersMatching(ServerState state) {
        StringBuilder hosts = new StringBuilder();
        for (QuorumPeer p : getPeerList()) {
            if (p.getPeerState() == state) {
                hosts.append(LOCALADDR).append(':').append(p.getClientPort()).append(',');
            }
        }
        return hosts.toString();
    }

    public ArrayList<QuorumPeer> getPeerList() {
        return new ArrayList<>(Arrays.asList(s1, s2, s3, s4, s5));
    }

    public QuorumPeer getPeerByClientPort(int port) {
        for (QuorumPeer p : getPeerList()) {
            if (p.getClientPort() == port) {
                return p;
            }
        }
        return null;
    }

    @AfterEach
    @Override
    public void tearDown() throws Exception {
        shutdownServers();
    }

    public void shutdownServers() {
        for (QuorumPeer p : getPeerList()) {
            shutdown(p);
        }
    }

    public static void shutdown(QuorumPeer p) {
        if (p != null) {
            p.shutdown();
        }
    }

    protected TestableZooKeeper createClient() throws IOException, InterruptedException {
        return createClient(hostPort);
    }

    protected TestableZooKeeper createClient(String hp) throws IOException, InterruptedException {
        return createClient(new CountdownWatcher(), hp);
    }

    protected TestableZooKeeper createClient(CountdownWatcher watcher, ServerState state) throws IOException, InterruptedException {
        return createClient(watcher, getPeersMatching(state));
    }
}
