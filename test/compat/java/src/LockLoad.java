import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/**
 * Counts under Curator's mutex until its standard input is closed. It prints a line for what it did:
 * "done", "repeated" after a lost connection, "lost" if a session is lost, or "failed" and the
 * reason. The argument is a connect string.
 */
final class LockLoad {
    private static final String LOCK = "/upgrade-curator-lock";
    private static final String COUNTER = "/upgrade-curator-counter";

    private final CuratorFramework client;

    private LockLoad(CuratorFramework client) {
        this.client = client;
    }

    public static void main(String[] args) throws Exception {
        AtomicBoolean stopping = new AtomicBoolean();
        Thread[] workers = new Thread[2];
        for (int i = 0; i < workers.length; i++) {
            CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], 10_000, 10_000, new RetryForever(50));
            client.getConnectionStateListenable().addListener((c, state) -> {
                if (state == ConnectionState.LOST && !stopping.get()) {
                    say("lost");
                }
            });
            client.start();
            workers[i] = new Thread(() -> new LockLoad(client).run(stopping));
            workers[i].start();
        }
        while (System.in.read() >= 0) {
            // until it is closed
        }
        stopping.set(true);
        for (Thread w : workers) {
            w.join();
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
    }

    private void run(AtomicBoolean stopping) {
        InterProcessMutex mutex = new InterProcessMutex(client, LOCK);
        while (!stopping.get()) {
            try {
                mutex.acquire();
                try {
                    count();
                } finally {
                    mutex.release();
                }
                say("done");
            } catch (KeeperException.ConnectionLossException e) {
                say("repeated");
            } catch (Exception e) {
                say("failed " + e);
            }
        }
        client.close();
    }

    /** Only the holder of the mutex changes the counter, so its version cannot be another one. */
    private void count() throws Exception {
        if (client.checkExists().forPath(COUNTER) == null) {
            client.create().orSetData().forPath(COUNTER, "0".getBytes(UTF_8));
        }
        Stat stat = new Stat();
        int before = read(stat);
        try {
            client.setData().withVersion(stat.getVersion()).forPath(COUNTER, Integer.toString(before + 1).getBytes(UTF_8));
        } catch (KeeperException.BadVersionException e) { // Curator repeats a request whose reply was lost
            int now = read(stat);
            if (now != before + 1) {
                throw new IOException("the counter went from " + before + " to " + now + " under a lock");
            }
        }
    }

    private int read(Stat stat) throws Exception {
        client.sync().forPath(COUNTER);
        return Integer.parseInt(new String(client.getData().storingStatIn(stat).forPath(COUNTER), UTF_8));
    }
}
