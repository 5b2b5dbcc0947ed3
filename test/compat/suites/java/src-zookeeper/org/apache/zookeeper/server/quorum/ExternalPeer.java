package org.apache.zookeeper.server.quorum;

import com.github.gozkd.suites.External;
import java.io.File;
import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import org.apache.zookeeper.client.FourLetterWordMain;
import org.apache.zookeeper.server.quorum.flexible.QuorumMaj;
import org.apache.zookeeper.server.quorum.flexible.QuorumVerifier;

/** A member in a process of its own, in the place of one that a test would run in its JVM. */
public final class ExternalPeer extends QuorumPeer {
    private final Path dir;
    private final Properties keys = new Properties();
    private volatile int clientPort;
    private volatile External process;
    private volatile boolean suspended;
    private boolean reconfigEnabled;
    private boolean following;

    public ExternalPeer(Map<Long, QuorumServer> peers, File dir, int clientPort, long id, int tickTime, int initLimit, int syncLimit)
        throws IOException {
        this.dir = dir.toPath().resolve("external");
        this.clientPort = clientPort;
        setMyid(id);
        setQuorumVerifier(new QuorumMaj(peers), false);
        set("dataDir", this.dir.resolve("data"));
        set("myid", id);
        set("tickTime", tickTime);
        set("initLimit", initLimit);
        set("syncLimit", syncLimit);
        for (Map.Entry<Long, QuorumServer> e : peers.entrySet()) {
            set("server." + e.getKey(), e.getValue());
        }
    }

    private void set(String key, Object value) {
        keys.setProperty(key, value.toString());
    }

    @Override
    public void enableLocalSessions(boolean flag) {
        set("localSessionsEnabled", flag);
    }

    @Override
    public void enableLocalSessionsUpgrading(boolean flag) {
        set("localSessionsUpgradingEnabled", flag);
    }

    @Override
    public synchronized void start() {
        reconfigEnabled = QuorumPeerConfig.isReconfigEnabled();
        set("reconfigEnabled", reconfigEnabled);
        try {
            process = External.start(dir, keys);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
        External watched = process;
        Thread t = new Thread(() -> {
            while (process == watched) {
                refresh();
                try {
                    Thread.sleep(100);
                } catch (InterruptedException e) {
                    throw new IllegalStateException(e);
                }
            }
        }, "roles of " + getMyId());
        t.setDaemon(true);
        t.start();
    }

    /** Sets the fields that tests look at. */
    public synchronized void refresh() {
        ServerState state = getPeerState();
        leader = state == ServerState.LEADING ? some(Leader.class) : null;
        follower = state == ServerState.FOLLOWING ? some(Follower.class) : null;
        observer = state == ServerState.OBSERVING ? some(Observer.class) : null;
    }

    private static <T> T some(Class<T> c) {
        try {
            Field f = Class.forName("sun.misc.Unsafe").getDeclaredField("theUnsafe");
            f.setAccessible(true);
            return c.cast(((sun.misc.Unsafe) f.get(null)).allocateInstance(c));
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    public void shutdown() {
        External p = process;
        process = null;
        if (p != null) {
            p.signal("CONT");
            p.stop();
        }
        refresh();
    }

    /** A suspended member takes no part in an ensemble. */
    @Override
    public void setSuspended(boolean suspended) {
        this.suspended = suspended;
        process.signal(suspended ? "STOP" : "CONT");
    }

    @Override
    public boolean isReconfigEnabled() {
        return reconfigEnabled;
    }

    @Override
    public ServerState getPeerState() {
        follow();
        String answer = process == null || suspended ? "" : ask(clientPort, "srvr");
        return answer.contains("Mode: leader") ? ServerState.LEADING
            : answer.contains("Mode: follower") ? ServerState.FOLLOWING
            : answer.contains("Mode: observer") ? ServerState.OBSERVING : ServerState.LOOKING;
    }

    /** Returns "" if the server does not serve. */
    private static String ask(int port, String word) {
        try {
            return FourLetterWordMain.send4LetterWord("127.0.0.1", port, word);
        } catch (Exception e) {
            return "";
        }
    }

    /** Takes over the configuration that this member has, or another one if this member has moved. */
    private synchronized void follow() {
        // setQuorumVerifier asks for addresses, too.
        if (following || process == null || suspended || !reconfigEnabled || super.getQuorumVerifier() == null) {
            return;
        }
        following = true;
        String answer = ask(clientPort, "conf");
        for (QuorumServer s : super.getQuorumVerifier().getAllMembers().values()) {
            if (answer.isEmpty() && s.id != getMyId() && s.clientAddr != null) {
                answer = ask(s.clientAddr.getPort(), "conf");
            }
        }
        int members = answer.indexOf("server.");
        try {
            if (members >= 0) {
                QuorumVerifier now = configFromString(answer.substring(members));
                setQuorumVerifier(now, false);
                QuorumServer me = now.getAllMembers().get(getMyId());
                if (me != null && me.clientAddr != null) {
                    clientPort = me.clientAddr.getPort();
                }
            }
        } catch (IOException | QuorumPeerConfig.ConfigException e) {
            throw new IllegalStateException(answer, e);
        } finally {
            following = false;
        }
    }

    @Override
    public QuorumVerifier getQuorumVerifier() {
        follow();
        return super.getQuorumVerifier();
    }

    @Override
    public MultipleAddresses getQuorumAddress() {
        follow();
        return super.getQuorumAddress();
    }

    @Override
    public MultipleAddresses getElectionAddress() {
        follow();
        return super.getElectionAddress();
    }

    @Override
    public int getClientPort() {
        follow();
        return clientPort;
    }

    @Override
    public InetSocketAddress getClientAddress() {
        return new InetSocketAddress("127.0.0.1", getClientPort());
    }
}
