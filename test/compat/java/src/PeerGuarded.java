import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.api.transaction.CuratorOp;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.state.ConnectionState;

/**
 * Writes that need a lock, a lease or leadership. "hold KIND PATH ID" acquires one. "commit COUNTER VALUE OP" sets COUNTER,
 * unless that is "-", and creates the znode OP, in a multi that checks the znode of the lock. "losses" says how often the
 * connection was lost.
 */
final class PeerGuarded {
    private PeerGuarded() {}

    private static final class Mutex extends InterProcessMutex {
        Mutex(CuratorFramework client, String path) {
            super(client, path);
        }

        String znode() {
            return getLockPath();
        }
    }

    static void addTo(Map<String, Peer.Verb> verbs, CuratorFramework client) {
        AtomicInteger losses = new AtomicInteger();
        client.getConnectionStateListenable().addListener((c, state) -> {
            if (state == ConnectionState.SUSPENDED) {
                losses.incrementAndGet();
            }
        });
        verbs.put("losses", (h, a) -> String.valueOf(losses.get()));
        verbs.put("hold", (h, a) -> {
            h.object = hold(h, client, a[0], a[1], a[2]);
            return "";
        });
        verbs.put("commit", (h, a) -> {
            List<CuratorOp> ops = new ArrayList<>();
            ops.add(client.transactionOp().check().forPath(h.as(String.class)));
            if (!a[0].equals("-")) {
                ops.add(client.transactionOp().setData().forPath(a[0], Peer.bytes(a[1])));
            }
            ops.add(client.transactionOp().create().forPath(a[2], new byte[0]));
            client.transaction().forOperations(ops);
            return "yes";
        });
    }

    /** Acquires, and returns the znode that exists as long as it is held. */
    private static String hold(Peer.Handle h, CuratorFramework client, String kind, String path, String id) throws Exception {
        switch (kind) {
            case "mutex": {
                Mutex lock = new Mutex(client, path);
                lock.acquire();
                h.holds(lock::release);
                return lock.znode();
            }
            case "semaphore": {
                Lease lease = new InterProcessSemaphoreV2(client, path, 2).acquire();
                h.holds(lease::close);
                return path + "/leases/" + lease.getNodeName();
            }
            case "latch": {
                LeaderLatch latch = new LeaderLatch(client, path, id);
                latch.start();
                h.holds(latch::close);
                latch.await();
                return latch.getLastPathIsLeader();
            }
            default:
                throw new IllegalArgumentException("nothing to hold: " + kind);
        }
    }
}
