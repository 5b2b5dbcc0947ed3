import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;

/**
 * Curator on an ensemble of gozkd to which harm is done. The port file is that of
 * {@code gozkd-testkit --ensemble 3 --port-file F}.
 */
final class CuratorFaultCases {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final HttpClient http = HttpClient.newHttpClient();
    private final JsonNode ports;

    CuratorFaultCases(String portFile) throws IOException {
        ports = JSON.readTree(new File(portFile));
    }

    void addTo(Cases cases) {
        add(cases, "leader_is_killed", this::leaderIsKilled);
        add(cases, "create_reply_is_lost", this::createReplyIsLost);
        add(cases, "protected_create_finds_its_znode", this::protectedCreateFindsItsZnode);
        add(cases, "mutex_survives_a_lost_create_reply", this::mutexSurvivesALostCreateReply);
        add(cases, "session_is_expired", this::sessionIsExpired);
        add(cases, "an_hour_passes", this::anHourPasses);
        add(cases, "a_partition_is_healed", this::aPartitionIsHealed);
    }

    private void add(Cases cases, String name, Cases.Case work) {
        cases.add(name, root -> {
            mend();
            ask("PUT", "/tree", "{\"" + root + "\":\"\"}");
            work.run(root);
        });
    }

    /** Leaves an ensemble that serves for the next case. */
    private void mend() throws Exception {
        ask("DELETE", "/faults", "");
        ask("POST", "/heal", "");
        for (JsonNode m : ask("GET", "/status", "").get("members")) {
            if (m.get("state").asText().equals("down")) {
                ask("POST", "/members/" + m.get("id").asInt() + "/start", "");
            }
        }
    }

    /** Asks the endpoint for faults. What was asked for is done when it returns. */
    private JsonNode ask(String method, String path, String body) throws Exception {
        HttpRequest request = HttpRequest.newBuilder(URI.create(ports.get("faults").asText() + path))
                .method(method, HttpRequest.BodyPublishers.ofString(body))
                .timeout(Duration.ofSeconds(Cases.WAIT))
                .build();
        HttpResponse<String> answer = http.send(request, HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 200) {
            throw new IOException(method + " " + path + ": " + answer.body());
        }
        return JSON.readTree(answer.body());
    }

    private int leader() throws Exception {
        return ask("GET", "/leader", "").get("id").asInt();
    }

    private String loseReply(String path, Client c) throws Exception {
        String fault = "{\"kind\":\"dropReply\",\"op\":\"create\",\"path\":\"" + path + "\",\"session\":" + c.session() + "}";
        return ask("POST", "/faults", fault).get("id").asText();
    }

    private List<String> all() {
        return List.of(ports.get("client").asText());
    }

    private List<String> only(int member) {
        return List.of(ports.get("members").get(member - 1).get("client").asText());
    }

    /** A client that notes its states. */
    private static final class Client implements AutoCloseable {
        final CuratorFramework zk;
        final List<ConnectionState> states = new CopyOnWriteArrayList<>();

        Client(List<String> hosts, int retries) throws Exception {
            zk = CuratorFrameworkFactory.newClient(
                    String.join(",", hosts), 10_000, 10_000, new RetryNTimes(retries, 50));
            zk.getConnectionStateListenable().addListener((c, state) -> states.add(state));
            zk.start();
            Cases.expect(zk.blockUntilConnected(Cases.WAIT, TimeUnit.SECONDS), "not connected");
            Cases.eventually("the state is noted", () -> states.contains(ConnectionState.CONNECTED));
        }

        long session() throws Exception {
            return zk.getZookeeperClient().getZooKeeper().getSessionId();
        }

        @Override
        public void close() {
            zk.close();
        }
    }

    private static final int MANY = 200;

    private void leaderIsKilled(String root) throws Exception {
        try (Client c = new Client(all(), MANY)) {
            long session = c.session();
            c.zk.create().withMode(CreateMode.EPHEMERAL).forPath(root + "/e");
            for (int i = 0; i < 3; i++) {
                int victim = leader();
                ask("POST", "/members/" + victim + "/kill", "");
                Cases.expect(leader() != victim, "member " + victim + " leads and is dead");
                c.zk.setData().forPath(root + "/e", ("" + i).getBytes(UTF_8));
                ask("POST", "/members/" + victim + "/start", "");
            }
            Cases.expect(c.session(), session);
            Cases.expect(c.zk.checkExists().forPath(root + "/e").getEphemeralOwner(), session);
            Cases.expect(!c.states.contains(ConnectionState.LOST), "states " + c.states);
        }
    }

    private void createReplyIsLost(String root) throws Exception {
        try (Client c = new Client(all(), 0)) {
            String fault = loseReply(root + "/a", c);
            Cases.expectThrows(KeeperException.ConnectionLossException.class, () -> c.zk.create().forPath(root + "/a", "x".getBytes(UTF_8)));
            Cases.expect(ask("GET", "/faults/" + fault + "?wait=10s", "").get("done").asBoolean(), "it did not happen");
            Cases.expect(ask("GET", "/tree?path=" + root + "/a", "").get(root + "/a").asText(), "x");
        }
    }

    private void protectedCreateFindsItsZnode(String root) throws Exception {
        try (Client c = new Client(all(), MANY)) {
            String fault = loseReply(root, c);
            String path = c.zk.create().withProtection().withMode(CreateMode.EPHEMERAL_SEQUENTIAL).forPath(root + "/n-");
            Cases.expect(ask("GET", "/faults/" + fault, "").get("count").asInt(), 1);
            Cases.expect(path.endsWith("-n-0000000000"), path);
            Cases.expect(c.zk.getChildren().forPath(root), List.of(path.substring(root.length() + 1)));
        }
    }

    private void mutexSurvivesALostCreateReply(String root) throws Exception {
        try (Client c = new Client(all(), MANY); Client other = new Client(all(), MANY)) {
            InterProcessMutex mutex = new InterProcessMutex(c.zk, root);
            String fault = loseReply(root, c);
            Cases.expect(mutex.acquire(Cases.WAIT, TimeUnit.SECONDS), "not acquired");
            Cases.expect(ask("GET", "/faults/" + fault, "").get("count").asInt(), 1);
            Cases.expect(!new InterProcessMutex(other.zk, root).acquire(100, TimeUnit.MILLISECONDS), "acquired twice");
            mutex.release();
        }
    }

    private void sessionIsExpired(String root) throws Exception {
        try (Client c = new Client(all(), MANY)) {
            long session = c.session();
            c.zk.create().withMode(CreateMode.EPHEMERAL).forPath(root + "/e");
            ask("POST", "/sessions/" + session + "/expire", "");
            Cases.expect(!ask("GET", "/tree?path=" + root, "").has(root + "/e"), "the ephemeral is still there");
            Cases.eventually("the session is lost", () -> c.states.contains(ConnectionState.LOST));
            Cases.eventually("there is another", () -> c.states.get(c.states.size() - 1) == ConnectionState.RECONNECTED);
            Cases.expect(c.session() != session, "it is the old one");
        }
    }

    /** A client that is connected keeps its session, and one whose member is cut off loses it. */
    private void anHourPasses(String root) throws Exception {
        int leader = leader();
        int away = 1 + leader % 3;
        try (Client stays = new Client(only(leader), MANY); Client goes = new Client(only(away), MANY)) {
            long session = stays.session();
            stays.zk.create().withMode(CreateMode.EPHEMERAL).forPath(root + "/stays");
            goes.zk.create().withMode(CreateMode.EPHEMERAL).forPath(root + "/goes");
            ask("POST", "/members/" + away + "/partition", "");
            ask("POST", "/advance", "{\"by\":\"1h\"}");
            JsonNode tree = ask("GET", "/tree?path=" + root, "");
            Cases.expect(tree.has(root + "/stays") && !tree.has(root + "/goes"), tree.toString());
            ask("POST", "/members/" + away + "/heal", "");
            Cases.eventually("it knows", () -> goes.states.contains(ConnectionState.LOST));
            Cases.expect(stays.session(), session);
            Cases.expect(stays.states, List.of(ConnectionState.CONNECTED));
        }
    }

    private void aPartitionIsHealed(String root) throws Exception {
        int leader = leader();
        int apart = 1 + leader % 3;
        try (Client c = new Client(only(apart), MANY); Client other = new Client(only(leader), MANY)) {
            long session = c.session();
            c.zk.create().withMode(CreateMode.EPHEMERAL).forPath(root + "/e");
            ask("POST", "/partition", "{\"groups\":[[" + apart + "]]}");
            other.zk.setData().forPath(root + "/e", "meanwhile".getBytes(UTF_8)); // the majority goes on
            Cases.eventually("the minority serves nobody", () -> c.states.contains(ConnectionState.SUSPENDED));
            ask("POST", "/heal", "");
            Cases.expect(new String(c.zk.getData().forPath(root + "/e"), UTF_8), "meanwhile");
            Cases.expect(c.session(), session);
            Cases.eventually("connected again", () -> c.states.get(c.states.size() - 1) == ConnectionState.RECONNECTED);
            Cases.expect(!c.states.contains(ConnectionState.LOST), "states " + c.states);
        }
    }
}
