package org.apache.zookeeper.server.quorum;

import com.github.gozkd.suites.External;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.apache.zookeeper.client.FourLetterWordMain;
import org.apache.zookeeper.server.quorum.flexible.QuorumMaj;

/** A member in a process of its own, in the place of one that a test would run in its JVM. */
public final class ExternalPeer extends QuorumPeer {
    private final Map<Long, QuorumServer> peers;
    private final File dir;
    private final int clientPort;
    private final Map<String, String> keys = new TreeMap<>();
    private volatile External process;

    public ExternalPeer(Map<Long, QuorumServer> peers, File dir, int clientPort, long id, int tickTime, int initLimit, int syncLimit)
        throws IOException {
        this.peers = peers;
        this.dir = dir;
        this.clientPort = clientPort;
        setMyid(id);
        setQuorumVerifier(new QuorumMaj(peers), false);
        keys.put("tickTime", Integer.toString(tickTime));
        keys.put("initLimit", Integer.toString(initLimit));
        keys.put("syncLimit", Integer.toString(syncLimit));
    }

    @Override
    public void enableLocalSessions(boolean flag) {
        keys.put("localSessionsEnabled", Boolean.toString(flag));
    }

    @Override
    public void enableLocalSessionsUpgrading(boolean flag) {
        keys.put("localSessionsUpgradingEnabled", Boolean.toString(flag));
    }

    @Override
    public synchronized void start() {
        Path data = dir.toPath().resolve("external").resolve("data");
        keys.put("dataDir", data.toString());
        keys.put("reconfigEnabled", Boolean.toString(QuorumPeerConfig.isReconfigEnabled()));
        for (Map.Entry<Long, QuorumServer> e : peers.entrySet()) {
            keys.put("server." + e.getKey(), e.getValue().toString());
        }
        try {
            Files.createDirectories(data);
            Files.write(data.resolve("myid"), Long.toString(getMyId()).getBytes(StandardCharsets.UTF_8));
            process = External.start(data.getParent(), keys);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        External watched = process;
        Thread t = new Thread(() -> watch(watched), "roles of " + getMyId());
        t.setDaemon(true);
        t.start();
    }

    /** Sets the field that tests look at, for as long as the process runs. */
    private void watch(External watched) {
        try {
            while (process == watched) {
                leader = getPeerState() == ServerState.LEADING ? someLeader() : null;
                Thread.sleep(100);
            }
            leader = null;
        } catch (InterruptedException | ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    private static Leader someLeader() throws ReflectiveOperationException {
        Field f = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
        f.setAccessible(true);
        return (Leader) ((sun.misc.Unsafe) f.get(null)).allocateInstance(Leader.class);
    }

    @Override
    public void shutdown() {
        External p = process;
        process = null;
        if (p != null) {
            p.stop();
        }
    }

    @Override
    public ServerState getPeerState() {
        if (process == null) {
            return ServerState.LOOKING;
        }
        try {
            String answer = FourLetterWordMain.send4LetterWord("127.0.0.1", clientPort, "srvr");
            return answer.contains("Mode: leader") ? ServerState.LEADING
                : answer.contains("Mode: follower") ? ServerState.FOLLOWING
                : answer.contains("Mode: observer") ? ServerState.OBSERVING : ServerState.LOOKING;
        } catch (Exception e) {
            return ServerState.LOOKING; // it does not serve
        }
    }

    @Override
    public int getClientPort() {
        return clientPort;
    }

    @Override
    public InetSocketAddress getClientAddress() {
        return new InetSocketAddress("127.0.0.1", clientPort);
    }
}
