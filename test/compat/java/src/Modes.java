import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/**
 * The Java client on an ensemble that loses its quorum and finds it again. See test/compat/modes. It
 * begins a stage when it reads a line, prints what it sees, and a dot at the end of the stage. The
 * argument is a connect string.
 */
final class Modes {
    private static final BufferedReader IN = new BufferedReader(new InputStreamReader(System.in, UTF_8));

    private interface Call {
        void run() throws Exception;
    }

    private Modes() {}

    public static void main(String[] args) throws Exception {
        String hosts = args[0];
        IN.readLine();
        ZooKeeper writer = new ZooKeeper(hosts, 10_000, e -> {}, false);
        say("writer", until(writer, ZooKeeper.States.CONNECTED));
        say("create", outcome(() -> writer.create("/java", "1".getBytes(UTF_8), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT)));
        say("ephemeral", outcome(() -> writer.create("/java-e", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL)));
        ZooKeeper early = new ZooKeeper(hosts, 10_000, e -> {}, true);
        say("read-only client with a quorum", until(early, ZooKeeper.States.CONNECTED));
        early.close();
        stage();

        Set<String> states = new ConcurrentSkipListSet<>();
        ZooKeeper fresh = new ZooKeeper(hosts, 10_000, e -> states.add(e.getState().toString()), true);
        say("read-only client without a quorum", until(fresh, ZooKeeper.States.CONNECTEDREADONLY));
        long session = fresh.getSessionId();
        say("get", new String(fresh.getData("/java", true, null), UTF_8));
        say("children", fresh.getChildren("/", false).contains("java"));
        say("exists", fresh.exists("/none", true) != null);
        say("set", outcome(() -> fresh.setData("/java", null, -1)));
        say("create", outcome(() -> fresh.create("/java-2", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL)));
        say("delete", outcome(() -> fresh.delete("/java", -1)));
        say("multi", outcome(() -> fresh.multi(List.of(Op.check("/java", -1)))));
        ZooKeeper plain = new ZooKeeper(hosts, 10_000, e -> {}, false);
        Thread.sleep(3000);
        say("client that wants to write", plain.getState());
        stage();

        say("the read-only client", until(fresh, ZooKeeper.States.CONNECTED), fresh.getSessionId() != session ? "new session" : "same session");
        say("the client that wants to write", until(plain, ZooKeeper.States.CONNECTED));
        say("set", outcome(() -> fresh.setData("/java", "3".getBytes(UTF_8), -1)));
        say("the writer", until(writer, ZooKeeper.States.CONNECTED));
        say("its znode", fresh.exists("/java-e", false) != null);
        say("states", states);
        for (ZooKeeper zk : List.of(writer, fresh, plain)) {
            zk.close();
        }
        System.out.println(".");
    }

    private static void say(Object... words) {
        StringBuilder line = new StringBuilder();
        for (Object w : words) {
            line.append(line.length() == 0 ? "" : " ").append(w);
        }
        System.out.println(line);
    }

    private static void stage() throws Exception {
        System.out.println(".");
        IN.readLine();
    }

    private static String outcome(Call call) throws Exception {
        try {
            call.run();
            return "ok";
        } catch (KeeperException e) {
            return e.code().toString();
        }
    }

    private static Object until(ZooKeeper zk, ZooKeeper.States want) throws Exception {
        for (int i = 0; i < 1200 && zk.getState() != want; i++) {
            Thread.sleep(50);
        }
        return zk.getState();
    }
}
