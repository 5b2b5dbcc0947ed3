// What bench recipes measures of Curator: the rows of bench/recipes.go, run by one process. Started from source:
//   java -cp CLASSPATH Peer.java ADDRESS ROOT ROW SECONDS WARM
// It prints {"n": operations, "all": with the unmeasured ones, "seconds": ..., "p50": microseconds, "p99": microseconds}.

import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

public class Peer {
    private static String address;
    private static long warmUntil;
    private static long until;
    private static final AtomicInteger all = new AtomicInteger();

    public static void main(String[] args) throws Exception {
        address = args[0];
        String root = args[1];
        String row = args[2];
        double seconds = Double.parseDouble(args[3]);
        double warm = Double.parseDouble(args[4]);
        int clients = row.equals("lock") ? 1 : row.equals("handover") ? 11 : row.equals("leadership") ? 3 : 8;
        CuratorFramework[] connected = new CuratorFramework[clients];
        for (int i = 0; i < clients; i++) {
            connected[i] = CuratorFrameworkFactory.builder().connectString(address).sessionTimeoutMs(10000)
                .retryPolicy(new ExponentialBackoffRetry(100, 3)).build();
            connected[i].start();
            connected[i].blockUntilConnected();
        }
        warmUntil = System.nanoTime() + (long) (warm * 1e9);
        until = warmUntil + (long) (seconds * 1e9);
        switch (row) {
            case "lock":
            case "handover":
                locks(connected, root, row.equals("handover"), seconds);
                break;
            case "leadership":
                elections(connected, root, seconds);
                break;
            case "queue":
                queue(connected, root, seconds);
                break;
            case "queue-built":
                builtQueue(connected, root, seconds);
                break;
            default:
                throw new IllegalArgumentException(row);
        }
        System.exit(0); // the sessions end with the connections
    }

    private static void locks(CuratorFramework[] clients, String root, boolean handover, double seconds) throws Exception {
        AtomicLong released = new AtomicLong();
        Times times = new Times();
        inThreads(clients, client -> {
            InterProcessMutex mutex = new InterProcessMutex(client, root + "/lock");
            while (System.nanoTime() < until) {
                long began = System.nanoTime();
                mutex.acquire();
                long now = System.nanoTime();
                if (now > warmUntil && handover && released.get() > warmUntil) {
                    times.add(now - released.get());
                }
                released.set(System.nanoTime());
                mutex.release();
                all.incrementAndGet();
                if (now > warmUntil && !handover) {
                    times.add(System.nanoTime() - began);
                }
            }
        });
        times.print(seconds);
    }

    private static void elections(CuratorFramework[] clients, String root, double seconds) throws Exception {
        AtomicLong closed = new AtomicLong();
        Times times = new Times();
        inThreads(clients, client -> {
            while (System.nanoTime() < until) {
                LeaderLatch latch = new LeaderLatch(client, root + "/leader", "x");
                latch.start();
                latch.await();
                long now = System.nanoTime();
                if (now > warmUntil && closed.get() > warmUntil) {
                    times.add(now - closed.get());
                }
                all.incrementAndGet();
                closed.set(System.nanoTime());
                latch.close();
            }
        });
        times.print(seconds);
    }

    private interface Work {
        void run(CuratorFramework client) throws Exception;
    }

    /** Does the work with each client at once, and waits for all. A failure ends the program. */
    private static void inThreads(CuratorFramework[] clients, Work work) throws InterruptedException {
        Thread[] threads = new Thread[clients.length];
        for (int i = 0; i < clients.length; i++) {
            CuratorFramework client = clients[i];
            threads[i] = new Thread(() -> {
                try {
                    work.run(client);
                } catch (Exception e) {
                    e.printStackTrace();
                    System.exit(1);
                }
            });
            threads[i].start();
        }
        for (Thread t : threads) {
            t.join();
        }
    }

    private static void queue(CuratorFramework[] clients, String root, double seconds) throws Exception {
        AtomicInteger taken = new AtomicInteger();
        byte[] item = new byte[100];
        for (int i = 0; i < clients.length; i++) {
            SimpleDistributedQueue queue = new SimpleDistributedQueue(clients[i], root + "/queue");
            boolean producer = i % 2 == 0;
            Thread t = new Thread(() -> {
                try {
                    while (true) {
                        if (producer) {
                            queue.offer(item);
                        } else if (queue.take() != null) {
                            count(taken);
                        }
                    }
                } catch (Exception e) {
                    e.printStackTrace();
                    System.exit(1);
                }
            });
            t.setDaemon(true);
            t.start();
        }
        sleepUntilEnd();
        System.out.printf("{\"n\": %d, \"all\": %d, \"seconds\": %f}%n", taken.get(), all.get(), seconds);
    }

    private static void builtQueue(CuratorFramework[] clients, String root, double seconds) throws Exception {
        AtomicInteger taken = new AtomicInteger();
        byte[] item = new byte[100];
        QueueSerializer<byte[]> raw = new QueueSerializer<>() {
            public byte[] serialize(byte[] b) {
                return b;
            }

            public byte[] deserialize(byte[] b) {
                return b;
            }
        };
        QueueConsumer<byte[]> consumer = new QueueConsumer<>() {
            public void consumeMessage(byte[] b) {
                count(taken);
            }

            public void stateChanged(CuratorFramework client, ConnectionState state) {
            }
        };
        for (int i = 0; i < clients.length; i++) {
            boolean producer = i % 2 == 0;
            DistributedQueue<byte[]> queue = QueueBuilder.builder(clients[i], producer ? null : consumer, raw, root + "/built").buildQueue();
            queue.start();
            if (!producer) {
                continue;
            }
            Thread t = new Thread(() -> {
                try {
                    while (true) {
                        queue.put(item);
                        queue.flushPuts(1, TimeUnit.HOURS); // one at a time, as the others do
                    }
                } catch (Exception e) {
                    e.printStackTrace();
                    System.exit(1);
                }
            });
            t.setDaemon(true);
            t.start();
        }
        sleepUntilEnd();
        System.out.printf("{\"n\": %d, \"all\": %d, \"seconds\": %f}%n", taken.get(), all.get(), seconds);
    }

    private static void count(AtomicInteger taken) {
        all.incrementAndGet();
        long now = System.nanoTime();
        if (now > warmUntil && now < until) {
            taken.incrementAndGet();
        }
    }

    private static void sleepUntilEnd() throws InterruptedException {
        new CountDownLatch(1).await(until - System.nanoTime(), TimeUnit.NANOSECONDS);
    }

    private static final class Times {
        private long[] times = new long[1 << 16];
        private int n;

        synchronized void add(long ns) {
            if (n == times.length) {
                times = Arrays.copyOf(times, 2 * n);
            }
            times[n++] = ns;
        }

        synchronized void print(double seconds) {
            Arrays.sort(times, 0, n);
            System.out.printf("{\"n\": %d, \"all\": %d, \"seconds\": %f, \"p50\": %f, \"p99\": %f}%n", n, Peer.all.get(), seconds,
                times[n / 2] / 1e3, times[n * 99 / 100] / 1e3);
        }
    }
}
