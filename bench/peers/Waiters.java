import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryForever;

/**
 * Lets many threads wait with one CuratorFramework, and prints how many were served, how many
 * sessions were lost, how often the client reconnected, and the seconds, as JSON. Arguments: a
 * connect string; a path; lock, semaphore or election; the limit in seconds; the number of waiters.
 */
final class Waiters {
    private static final int LEASES = 10;

    private Waiters() {}

    private interface Waiter {
        void await(int i) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        int n = Integer.parseInt(args[4]);
        double limit = Double.parseDouble(args[3]);
        AtomicInteger served = new AtomicInteger();
        AtomicInteger lost = new AtomicInteger();
        AtomicInteger reconnects = new AtomicInteger();
        ConcurrentLinkedQueue<Throwable> failed = new ConcurrentLinkedQueue<>();
        CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], 10_000, 10_000, new RetryForever(50));
        client.getConnectionStateListenable().addListener((c, state) -> {
            if (state == ConnectionState.LOST) {
                lost.incrementAndGet();
            } else if (state == ConnectionState.RECONNECTED) {
                reconnects.incrementAndGet();
            }
        });
        client.start();
        client.blockUntilConnected();
        Waiter waiter = waiter(client, args[1], args[2]);
        CountDownLatch ended = new CountDownLatch(n);
        long begun = System.nanoTime();
        for (int i = 0; i < n; i++) {
            int number = i;
            Thread thread = new Thread(() -> {
                try {
                    waiter.await(number);
                    served.incrementAndGet();
                } catch (Throwable e) {
                    failed.add(e);
                }
                ended.countDown();
            });
            thread.setDaemon(true);
            thread.start();
        }
        ended.await((long) (limit * 1e9) - (System.nanoTime() - begun), TimeUnit.NANOSECONDS);
        double seconds = (System.nanoTime() - begun) / 1e9;
        if (!failed.isEmpty()) {
            System.err.println("curator: " + failed.size() + " failed, the first with " + failed.peek());
        }
        System.out.printf("{\"served\": %s, \"lost\": %s, \"reconnects\": %s, \"seconds\": %f}%n", served, lost, reconnects, seconds);
        System.out.flush();
        Runtime.getRuntime().halt(0); // without those that still wait
    }

    private static Waiter waiter(CuratorFramework client, String path, String kind) {
        switch (kind) {
            case "lock":
                return i -> {
                    InterProcessMutex mutex = new InterProcessMutex(client, path);
                    mutex.acquire();
                    mutex.release();
                };
            case "semaphore":
                return i -> {
                    InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, LEASES);
                    Lease lease = semaphore.acquire();
                    semaphore.returnLease(lease);
                };
            default:
                return i -> {
                    try (LeaderLatch latch = new LeaderLatch(client, path, Integer.toString(i))) {
                        latch.start();
                        latch.await();
                    }
                };
        }
    }
}
