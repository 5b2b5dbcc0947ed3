import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.shared.SharedCount;

/** Curator's mutex, read-write lock and semaphore. "try..." takes milliseconds and answers yes or no. */
final class PeerLocks {
    private PeerLocks() {}

    static void addTo(Map<String, Peer.Verb> verbs, CuratorFramework client) {
        verbs.put("lock", (h, a) -> held(h, new InterProcessMutex(client, a[0])));
        verbs.put("trylock", (h, a) -> tried(h, new InterProcessMutex(client, a[0]), a[1]));
        verbs.put("wlock", (h, a) -> held(h, new InterProcessReadWriteLock(client, a[0]).writeLock()));
        verbs.put("trywlock", (h, a) -> tried(h, new InterProcessReadWriteLock(client, a[0]).writeLock(), a[1]));
        verbs.put("rlock", (h, a) -> held(h, new InterProcessReadWriteLock(client, a[0]).readLock()));
        verbs.put("tryrlock", (h, a) -> tried(h, new InterProcessReadWriteLock(client, a[0]).readLock(), a[1]));
        verbs.put("wlock-then-rlock", (h, a) -> {
            InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, a[0]);
            lock.writeLock().acquire();
            lock.readLock().acquire();
            lock.writeLock().release();
            h.holds(lock.readLock()::release);
            return "";
        });
        verbs.put("lock-revocable", (h, a) -> {
            InterProcessMutex lock = new InterProcessMutex(client, a[0]);
            Semaphore asked = new Semaphore(0);
            lock.makeRevocable(l -> asked.release());
            h.object = asked;
            return held(h, lock);
        });
        verbs.put("revoked", (h, a) -> Peer.yes(h.as(Semaphore.class).tryAcquire(Long.parseLong(a[0]), TimeUnit.MILLISECONDS)));
        verbs.put("revoke", (h, a) -> {
            Revoker.attemptRevoke(client, a[0]);
            return "";
        });
        verbs.put("acquire", (h, a) -> {
            Lease lease = new InterProcessSemaphoreV2(client, a[0], Integer.parseInt(a[1])).acquire();
            h.holds(lease::close);
            return "";
        });
        verbs.put("acquire-shared", (h, a) -> {
            SharedCount most = new SharedCount(client, a[1], 0);
            most.start();
            Lease lease = new InterProcessSemaphoreV2(client, a[0], most).acquire();
            h.holds(() -> {
                lease.close();
                most.close();
            });
            return "";
        });
        verbs.put("tryacquire", (h, a) -> {
            Lease lease = new InterProcessSemaphoreV2(client, a[0], Integer.parseInt(a[1]))
                    .acquire(Long.parseLong(a[2]), TimeUnit.MILLISECONDS);
            if (lease != null) {
                h.holds(lease::close);
            }
            return Peer.yes(lease != null);
        });
    }

    private static String held(Peer.Handle h, InterProcessMutex lock) throws Exception {
        lock.acquire();
        h.holds(lock::release);
        return "";
    }

    private static String tried(Peer.Handle h, InterProcessMutex lock, String ms) throws Exception {
        boolean got = lock.acquire(Long.parseLong(ms), TimeUnit.MILLISECONDS);
        if (got) {
            h.holds(lock::release);
        }
        return Peer.yes(got);
    }
}
