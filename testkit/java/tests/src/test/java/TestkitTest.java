import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.github.gozkd.testkit.Fault;
import com.github.gozkd.testkit.InstanceSpec;
import com.github.gozkd.testkit.Member;
import com.github.gozkd.testkit.Op;
import com.github.gozkd.testkit.TestingCluster;
import com.github.gozkd.testkit.TestingServer;
import com.github.gozkd.testkit.TestkitException;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.ZKClientConfig;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TestkitTest {
    private static CuratorFramework connected(String connectString) {
        CuratorFramework client = CuratorFrameworkFactory.newClient(connectString, 10_000, 10_000, new RetryForever(10));
        client.start();
        return client;
    }

    private static long session(CuratorFramework client) throws Exception {
        return client.getZookeeperClient().getZooKeeper().getSessionId();
    }

    private static void eventually(Callable<Boolean> check) throws Exception {
        for (long began = System.nanoTime(); !check.call(); Thread.sleep(10)) {
            assertTrue(System.nanoTime() - began < 20_000_000_000L, "it did not happen");
        }
    }

    @Test
    void serversShareNothing() throws Exception {
        TestingServer other = new TestingServer();
        try (TestingServer one = new TestingServer()) {
            one.load(Map.of("/a/b", "t\u00e4xt \"\n\\ \ud83d\ude00", "/c", ""));
            assertEquals(Map.of("/", "", "/a", "", "/a/b", "t\u00e4xt \"\n\\ \ud83d\ude00", "/c", ""), one.tree("/"));
            try (CuratorFramework client = connected(one.getConnectString())) {
                client.create().forPath("/binary", new byte[] {0, -1});
            }
            assertEquals(-1, one.bytes("/binary").get("/binary")[1]);
            assertEquals(Map.of("/", ""), other.tree("/"));
            assertTrue(one.dump().contains("/a/b"));
        }
        other.close();
        other.close();
        assertThrows(IllegalStateException.class, () -> other.tree("/"));
        assertThrows(IllegalStateException.class, other::restart);
        assertFalse(other.getTempDirectory().exists());
    }

    @Test
    void replyDropped() throws Exception {
        try (TestingServer server = new TestingServer();
                CuratorFramework client = CuratorFrameworkFactory.newClient(server.getConnectString(), new RetryOneTime(10))) {
            client.start();
            Fault fault = server.dropReply(Op.CREATE, "/job");
            // Curator tries again, and the first attempt was carried out.
            assertThrows(KeeperException.NodeExistsException.class, () -> client.create().forPath("/job"));
            assertTrue(fault.await(Duration.ofSeconds(5)));
            assertEquals(1, fault.count());
            Fault again = server.dropReply(Op.CREATE);
            client.create().withProtection().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath("/protected-");
            assertTrue(again.await(Duration.ZERO));
        }
    }

    @Test
    void errorsAndDelays() throws Exception {
        try (TestingServer server = new TestingServer(); CuratorFramework client = connected(server.getConnectString())) {
            client.create().forPath("/a"); // Curator itself reads /zookeeper/config
            server.fail(Op.GET, "/a", KeeperException.Code.NONODE.intValue());
            assertThrows(KeeperException.NoNodeException.class, () -> client.getData().forPath("/a"));
            client.getData().forPath("/a");
            Fault late = server.delay(Op.EXISTS, Duration.ofMillis(50));
            long began = System.nanoTime();
            client.checkExists().forPath("/");
            assertTrue(System.nanoTime() - began >= 50_000_000);
            assertTrue(late.await(Duration.ZERO));
            Fault always = server.arm(Map.of("kind", "fail", "op", "set", "code", -101, "times", -1));
            assertThrows(KeeperException.NoNodeException.class, () -> client.setData().forPath("/"));
            assertThrows(KeeperException.NoNodeException.class, () -> client.setData().forPath("/"));
            assertEquals(2, always.count());
            always.remove();
            client.setData().forPath("/");
            assertThrows(TestkitException.class, () -> server.fail(Op.GET, 1));
            assertThrows(TestkitException.class, () -> server.reset(77));
        }
    }

    @Test
    void timeAndSessions() throws Exception {
        try (TestingServer server = new TestingServer(); CuratorFramework client = connected(server.getConnectString());
                CuratorFramework other = connected(server.getConnectString())) {
            other.create().withMode(CreateMode.EPHEMERAL).forPath("/alive");
            client.create().withTtl(60_000).withMode(CreateMode.PERSISTENT_WITH_TTL).forPath("/short");
            server.advance(Duration.ofHours(1)); // both are connected
            assertTrue(client.checkExists().forPath("/alive") != null);
            assertNull(client.checkExists().forPath("/short"));
            long id = session(other);
            assertTrue(server.sessions().contains(id));
            CountDownLatch suspended = new CountDownLatch(1);
            CountDownLatch lost = new CountDownLatch(1);
            other.getConnectionStateListenable().addListener((c, state) -> {
                if (state == ConnectionState.SUSPENDED) {
                    suspended.countDown();
                }
                if (state == ConnectionState.LOST) {
                    lost.countDown();
                }
            });
            server.cut(id);
            suspended.await();
            eventually(() -> other.getZookeeperClient().isConnected());
            assertEquals(id, session(other));
            server.expireSession(id);
            lost.await();
            assertNull(client.checkExists().forPath("/alive"));
        }
    }

    @Test
    void snapshots() throws Exception {
        try (TestingServer server = new TestingServer(); CuratorFramework client = connected(server.getConnectString())) {
            server.load(Map.of("/a", "1"));
            long before = server.snapshot();
            client.setData().forPath("/a", "2".getBytes(StandardCharsets.UTF_8));
            client.create().forPath("/b");
            server.fail(Op.GET, -101);
            server.reset(before);
            assertEquals(Map.of("/", "", "/a", "1"), server.tree("/"));
            assertEquals("1", new String(client.getData().forPath("/a"), StandardCharsets.UTF_8));
        }
    }

    @Test
    void stopStartKillKeepPortAndData() throws Exception {
        try (TestingServer server = new TestingServer(false)) {
            int port = server.getPort();
            assertThrows(IOException.class, () -> new Socket("127.0.0.1", port).close());
            server.start();
            server.start();
            try (CuratorFramework client = connected(server.getConnectString())) {
                client.create().forPath("/a");
                long id = session(client);
                server.stop();
                server.stop();
                server.start();
                server.kill();
                server.restart();
                server.restart();
                client.checkExists().forPath("/a");
                assertEquals(id, session(client));
                assertEquals(port, server.getPort());
            }
        }
    }

    /** As Curator's tests do: another server takes the place of one that was stopped. */
    @Test
    void anotherServerTakesOver() throws Exception {
        TestingServer first = new TestingServer();
        first.load(Map.of("/a", "1"));
        first.stop();
        try (TestingServer second = new TestingServer(first.getPort(), first.getTempDirectory())) {
            assertEquals(first.getConnectString(), second.getConnectString());
            assertEquals("1", second.tree("/a").get("/a"));
            assertThrows(TestkitException.class, () -> new TestingServer(second.getPort()));
            assertThrows(TestkitException.class, () -> new TestingServer(-1, second.getTempDirectory()));
            second.stop();
            try (TestingServer third = new TestingServer(second.getPort(), second.getTempDirectory())) {
                assertEquals("1", third.tree("/a").get("/a"));
            }
        }
        first.close();
        TestingCluster ensemble = new TestingCluster(3);
        ensemble.start();
        ensemble.load(Map.of("/a", "1"));
        ensemble.stop();
        try (TestingCluster second = new TestingCluster(ensemble.getInstances())) {
            second.start();
            assertEquals("1", second.tree("/a").get("/a"));
            second.stop();
            try (TestingCluster two = new TestingCluster(List.copyOf(second.getInstances()).subList(1, 3))) { // a majority
                two.start();
                assertEquals("1", two.tree("/a").get("/a"));
                assertTrue(two.getServers().contains(two.leader()));
            }
        }
    }

    @Test
    void specs(@TempDir File directory) throws Exception {
        InstanceSpec spec = new InstanceSpec(directory, -1, -1, -1, false, 7, 100, 1);
        try (TestingServer server = new TestingServer(spec, true); CuratorFramework client = connected(server.getConnectString())) {
            client.checkExists().forPath("/");
            assertEquals(directory, server.getTempDirectory());
            assertEquals(7, spec.getServerId());
            ZooKeeper second = new ZooKeeper(server.getConnectString(), 5000, null);
            assertThrows(KeeperException.ConnectionLossException.class, () -> second.exists("/", false)); // maxClientCnxns
            second.close();
        }
        assertTrue(directory.exists());
        assertThrows(IllegalArgumentException.class,
                () -> new InstanceSpec(null, -1, -1, -1, true, -1, -1, -1, Map.of("jute.maxbuffer", "1")));
        assertThrows(IllegalArgumentException.class, () -> new InstanceSpec(null, -1, -1, -1, true, -1, -1, -1, null, "example.org"));
        assertEquals(Map.of(), new InstanceSpec(null, -1, -1, -1, true, -1, -1, -1, null, "127.0.0.1").getCustomProperties());
    }

    /** Members without data found an ensemble together: one after the other would wait for the rest. */
    @Test
    void membersStartTogether() throws Exception {
        InstanceSpec first = new InstanceSpec(null, -1, -1, -1, true, -1, 5000, -1); // with such ticks they would wait for a minute
        try (TestingCluster cluster = new TestingCluster(first, InstanceSpec.newInstanceSpec(), InstanceSpec.newInstanceSpec())) {
            cluster.start();
            cluster.leader();
        }
    }

    /** As Curator's tests do: a server that never takes part is named in a reconfig. */
    @Test
    void madeSpecs() throws Exception {
        try (TestingCluster cluster = new TestingCluster(TestingCluster.makeSpecs(3));
                TestingCluster further = new TestingCluster(TestingCluster.makeSpecs(1, false))) {
            InstanceSpec spec = further.getInstances().iterator().next();
            assertEquals(4, spec.getServerId());
            assertTrue(spec.getElectionPort() > 0 && spec.getQuorumPort() > 0);
            Map<InstanceSpec, Collection<InstanceSpec>> alone = Map.of(spec, cluster.getInstances());
            assertThrows(IllegalArgumentException.class, () -> new TestingCluster(alone));
        }
    }

    @Test
    void leaderDies() throws Exception {
        try (TestingCluster cluster = new TestingCluster(3)) {
            cluster.start();
            try (CuratorFramework client = connected(cluster.getConnectString())) {
                client.create().forPath("/a");
                Member leader = cluster.leader();
                leader.kill();
                assertNotEquals(leader.number(), cluster.leader().number());
                client.checkExists().forPath("/a");
                leader.start();
                assertEquals(true, leader.status().get("serving"));
                assertEquals(List.of(1, 2, 3), cluster.getInstances().stream().map(InstanceSpec::getServerId).collect(Collectors.toList()));
                String config = new String(client.getConfig().forEnsemble(), StandardCharsets.UTF_8);
                for (InstanceSpec spec : cluster.getInstances()) {
                    assertTrue(config.matches("(?s).*server\\." + spec.getServerId() + "=[^\n]*:" + spec.getPort() + "\\s.*"), config);
                }
                InstanceSpec connected = cluster.findConnectionInstance(client.getZookeeperClient().getZooKeeper());
                assertTrue(cluster.getInstances().contains(connected));
                assertTrue(cluster.killServer(connected));
                client.checkExists().forPath("/a");
                assertTrue(cluster.restartServer(connected));
                assertFalse(cluster.killServer(InstanceSpec.newInstanceSpec()));
            }
        }
    }

    @Test
    void partition() throws Exception {
        try (TestingCluster cluster = new TestingCluster(3)) {
            cluster.start();
            int leader = cluster.leader().number();
            cluster.partition(List.of(leader), List.of(leader % 3 + 1, (leader + 1) % 3 + 1));
            eventually(() -> cluster.leader().number() != leader);
            cluster.heal();
            cluster.members().get(0).pause();
            assertEquals("paused", cluster.members().get(0).status().get("state"));
            cluster.members().get(0).resume();
        }
    }

    @Test
    void tls(@TempDir Path directory) throws Exception {
        try (TestingServer server = new TestingServer(InstanceSpec.newInstanceSpec().withTls(), true)) {
            ZKClientConfig config = new ZKClientConfig();
            server.clientProperties("alice", directory).forEach(config::setProperty);
            CountDownLatch connected = new CountDownLatch(1);
            ZooKeeper client = new ZooKeeper(server.getConnectString(), 10_000, e -> {
                if (e.getState() == KeeperState.SyncConnected) {
                    connected.countDown();
                }
            }, config);
            connected.await();
            assertTrue(client.whoAmI().stream().anyMatch(who -> who.getUser().equals("CN=alice")));
            client.close();
        }
        try (TestingServer server = new TestingServer()) {
            assertThrows(TestkitException.class, () -> server.clientProperties("alice", directory));
        }
    }

    @Test
    void readOnly() throws Exception {
        System.setProperty("readonlymode.enabled", "true");
        try (TestingCluster cluster = new TestingCluster(3)) {
            System.clearProperty("readonlymode.enabled");
            cluster.start();
            cluster.load(Map.of("/a", "1"));
            cluster.members().get(0).kill();
            cluster.members().get(1).kill();
            CountDownLatch readOnly = new CountDownLatch(1);
            String last = cluster.members().get(2).getInstanceSpec().getConnectString();
            ZooKeeper client = new ZooKeeper(last, 10_000, e -> {
                if (e.getState() == KeeperState.ConnectedReadOnly) {
                    readOnly.countDown();
                }
            }, true);
            readOnly.await();
            assertEquals("1", new String(client.getData("/a", false, null), StandardCharsets.UTF_8));
            assertThrows(KeeperException.NotReadOnlyException.class, () -> client.setData("/a", null, -1));
            client.close();
        } finally {
            System.clearProperty("readonlymode.enabled");
        }
    }

    /** The times are measured, not judged: the machine may be busy. */
    @Test
    void startTimesAndMemory() throws Exception {
        String said = java(StartTimes.class).lines().collect(Collectors.joining("\n"));
        System.out.println(said);
        Matcher memory = Pattern.compile("200 servers: (\\d+) MB").matcher(said);
        assertTrue(memory.find() && Integer.parseInt(memory.group(1)) <= 300);
    }

    /** Another JVM; what it prints. */
    private static BufferedReader java(Class<?> main, String... flags) throws IOException {
        List<String> words = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        words.addAll(List.of(flags));
        words.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
        Process other = new ProcessBuilder(words).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        return new BufferedReader(new InputStreamReader(other.getInputStream()));
    }

    @Test
    void aDamagedProgramIsReplaced(@TempDir Path home) throws Exception {
        for (int i = 0; i < 2; i++) {
            assertTrue(Integer.parseInt(java(TestkitTest.class, "-Duser.home=" + home).readLine()) > 0);
            try (Stream<Path> all = Files.walk(home.resolve(".cache").resolve("gozkd-testkit"))) {
                Path program = all.filter(Files::isRegularFile).findFirst().get();
                Files.delete(program); // a running program cannot be overwritten
                Files.writeString(program, "damaged");
            }
        }
    }

    /** Starts a server and ends without closing it. */
    public static void main(String[] args) throws Exception {
        System.out.println(new TestingServer().getPort());
        System.out.flush();
        Runtime.getRuntime().halt(1);
    }

    @Test
    void endsWithItsJvm() throws Exception {
        int port = Integer.parseInt(java(TestkitTest.class).readLine());
        eventually(() -> {
            try {
                new Socket("127.0.0.1", port).close();
                return false;
            } catch (IOException e) {
                return true;
            }
        });
    }
}
