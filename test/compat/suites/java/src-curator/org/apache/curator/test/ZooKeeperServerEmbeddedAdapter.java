package org.apache.curator.test;

import com.github.gozkd.suites.External;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Properties;
import org.apache.zookeeper.server.ServerCnxnFactory;
import org.apache.zookeeper.server.quorum.QuorumPeerConfig;

/** Stands before Curator's class of this name: starts a server process with the same configuration. */
public class ZooKeeperServerEmbeddedAdapter implements ZooKeeperMainFace {
    private External server;
    private int port;

    @Override
    public void start(QuorumPeerConfigBuilder configBuilder) {
        try {
            Properties keys = configBuilder.buildProperties();
            keys.put("admin.enableServer", "false");
            keys.put("4lw.commands.whitelist", "*");
            keys.put("reconfigEnabled", Boolean.toString(QuorumPeerConfig.isReconfigEnabled()));
            port = Integer.parseInt(keys.getProperty("clientPort", "0"));
            if (port == 0) {
                try (ServerSocket s = new ServerSocket(0)) {
                    port = s.getLocalPort();
                }
            }
            keys.put("clientPort", Integer.toString(port));
            Path dataDir = Paths.get(keys.getProperty("dataDir"));
            server = External.start(dataDir.resolve("external"), keys);
            server.awaitPort(port);
        } catch (Exception e) {
            throw new FailedServerStartException(e);
        }
    }

    @Override
    public int getClientPort() {
        return port;
    }

    public ServerCnxnFactory getServerCnxnFactory() {
        throw new IllegalStateException("the server is in a process of its own");
    }

    @Override
    public void kill() {
        if (server != null) {
            server.kill();
        }
    }

    @Override
    public void close() {
        if (server != null) {
            server.stop();
        }
    }
}
