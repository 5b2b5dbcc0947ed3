package org.apache.zookeeper.server;

import com.github.gozkd.suites.External;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;

/** Starts a server process in the place of the ZooKeeperServer that it is given, with the same settings. */
public abstract class ExternalCnxnFactory extends ServerCnxnFactory {
    private InetSocketAddress address;
    private int maxClientCnxns = 60;
    private int backlog = -1;
    private External server;

    @Override
    public void configure(InetSocketAddress addr, int maxcc, int backlog, boolean secure) throws IOException {
        configureSaslLogin(); // a wrong JAAS file must fail here
        if (addr.getPort() == 0) {
            try (ServerSocket s = new ServerSocket(0)) {
                addr = new InetSocketAddress(addr.getAddress(), s.getLocalPort());
            }
        }
        this.address = addr;
        this.maxClientCnxns = maxcc;
        this.backlog = backlog;
        this.secure = secure;
    }

    @Override
    public void startup(ZooKeeperServer zks, boolean startServer) throws IOException, InterruptedException {
        setZooKeeperServer(zks);
        if (!startServer) {
            return;
        }
        // The server's own directory: ZooKeeper has left its version-2 in the other.
        Path dir = zks.getTxnLogFactory().getDataLogDir().getParentFile().toPath().resolve("external");
        Map<String, String> keys = new TreeMap<>();
        keys.put("dataDir", dir.resolve("data").toString());
        keys.put("tickTime", Integer.toString(zks.getTickTime()));
        keys.put("minSessionTimeout", Integer.toString(zks.getMinSessionTimeout()));
        keys.put("maxSessionTimeout", Integer.toString(zks.getMaxSessionTimeout()));
        keys.put("maxClientCnxns", Integer.toString(Math.max(0, maxClientCnxns)));
        keys.put(secure ? "secureClientPort" : "clientPort", Integer.toString(address.getPort()));
        if (!address.getAddress().isAnyLocalAddress()) {
            keys.put(secure ? "secureClientPortAddress" : "clientPortAddress", address.getAddress().getHostAddress());
        }
        server = External.start(dir, keys);
    }

    @Override
    public void shutdown() {
        if (server != null) {
            server.stop();
            server = null;
        }
        if (login != null) {
            login.shutdown();
        }
    }

    @Override
    public int getLocalPort() {
        return address.getPort();
    }

    @Override
    public InetSocketAddress getLocalAddress() {
        return address;
    }

    @Override
    public int getMaxClientCnxnsPerHost() {
        return maxClientCnxns;
    }

    @Override
    public void setMaxClientCnxnsPerHost(int max) {
        maxClientCnxns = max;
    }

    @Override
    public int getSocketListenBacklog() {
        return backlog;
    }

    @Override
    public Iterable<ServerCnxn> getConnections() {
        return Collections.emptyList();
    }

    @Override
    public Iterable<Map<String, Object>> getAllConnectionInfo(boolean brief) {
        return Collections.emptyList();
    }

    @Override
    public void reconfigure(InetSocketAddress addr) {
        throw new UnsupportedOperationException("the server is in a process of its own");
    }

    @Override
    public void join() throws InterruptedException {
        External s = server;
        if (s != null) {
            s.join();
        }
    }

    @Override
    public void start() {}

    @Override
    public void closeAll(ServerCnxn.DisconnectReason reason) {}

    @Override
    public void resetAllConnectionStats() {}
}
