import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.transaction.CuratorTransactionResult;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.PathChildrenCache;
import org.apache.curator.framework.recipes.cache.PathChildrenCacheEvent;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.nodes.PersistentTtlNode;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.retry.RetryNTimes;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.data.Stat;

/** Curator's framework and its recipes, each between two clients where two matter. */
final class CuratorCases {
    private final String hosts;

    CuratorCases(String hosts) {
        this.hosts = hosts;
    }

    /** Work that needs two clients and a path for itself, which does not exist yet. */
    private interface Work {
        void run(CuratorFramework one, CuratorFramework two, String root) throws Exception;
    }

    void addTo(Cases cases) {
        add(cases, "create_parents", this::createParents);
        add(cases, "create_parent_containers", this::createParentContainers);
        add(cases, "protected_create", this::protectedCreate);
        add(cases, "create_or_set", this::createOrSet);
        add(cases, "transaction", this::transaction);
        add(cases, "background", this::background);
        add(cases, "namespace", this::namespace);
        add(cases, "mutex", this::mutex);
        add(cases, "mutex_waits", this::mutexWaits);
        add(cases, "read_write_lock", this::readWriteLock);
        add(cases, "semaphore", this::semaphore);
        add(cases, "leader_latch", this::leaderLatch);
        add(cases, "leader_selector", this::leaderSelector);
        add(cases, "shared_count", this::sharedCount);
        add(cases, "atomic_long", this::atomicLong);
        add(cases, "barrier", this::barrier);
        add(cases, "double_barrier", this::doubleBarrier);
        add(cases, "path_children_cache", this::pathChildrenCache);
        add(cases, "curator_cache", this::curatorCache);
        add(cases, "persistent_node", this::persistentNode);
        add(cases, "persistent_ttl_node", this::persistentTtlNode);
        add(cases, "group_member", this::groupMember);
        add(cases, "queue", this::queue);
        add(cases, "service_discovery", this::serviceDiscovery);
        add(cases, "reconnect", this::reconnect);
    }

    private void add(Cases cases, String name, Work work) {
        cases.add(name, root -> {
            try (CuratorFramework one = connect(hosts);
                    CuratorFramework two = connect(hosts)) {
                work.run(one, two, root);
            }
        });
    }

    private static CuratorFramework connect(String hosts) throws Exception {
        CuratorFramework c = CuratorFrameworkFactory.newClient(hosts, 10_000, 10_000, new ExponentialBackoffRetry(50, 5));
        c.start();
        Cases.expect(c.blockUntilConnected(Cases.WAIT, TimeUnit.SECONDS), "not connected");
        return c;
    }

    private static byte[] bytes(String s) {
        return s.getBytes(UTF_8);
    }

    private static String text(byte[] b) {
        return new String(b, UTF_8);
    }

    private void createParents(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        one.create().creatingParentsIfNeeded().forPath(root + "/a/b", bytes("1"));
        Cases.expect(text(two.getData().forPath(root + "/a/b")), "1");
        one.delete().deletingChildrenIfNeeded().forPath(root);
        Cases.expect(two.checkExists().forPath(root), null);
    }

    private void createParentContainers(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        one.create().creatingParentContainersIfNeeded().forPath(root + "/box/a");
        one.delete().forPath(root + "/box/a");
        Cases.eventually("the container is collected", () -> two.checkExists().forPath(root + "/box") == null);
    }

    private void protectedCreate(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        String path = one.create()
                .creatingParentsIfNeeded()
                .withProtection()
                .withMode(CreateMode.EPHEMERAL_SEQUENTIAL)
                .forPath(root + "/n-");
        Cases.expect(path.startsWith(root + "/_c_") && path.endsWith("-n-0000000000"), path);
        Cases.expect(two.getChildren().forPath(root).size(), 1);
    }

    private void createOrSet(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        one.create().orSetData().forPath(root, bytes("1"));
        one.create().orSetData().forPath(root, bytes("2"));
        Stat stat = new Stat();
        Cases.expect(text(two.getData().storingStatIn(stat).forPath(root)), "2");
        Cases.expect(stat.getVersion(), 1);
    }

    private void transaction(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        Collection<CuratorTransactionResult> results = one.transaction()
                .forOperations(
                        one.transactionOp().create().forPath(root, bytes("1")),
                        one.transactionOp().create().forPath(root + "/a"),
                        one.transactionOp().setData().withVersion(0).forPath(root, bytes("2")),
                        one.transactionOp().check().withVersion(1).forPath(root),
                        one.transactionOp().delete().forPath(root + "/a"));
        Cases.expect(results.size(), 5);
        Cases.expect(text(two.getData().forPath(root)), "2");
        Cases.expectThrows(
                KeeperException.NodeExistsException.class,
                () -> one.transaction()
                        .forOperations(
                                one.transactionOp().create().forPath(root + "/b"), one.transactionOp().create().forPath(root)));
        Cases.expect(two.checkExists().forPath(root + "/b"), null);
    }

    private void background(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        LinkedBlockingQueue<String> done = new LinkedBlockingQueue<>();
        one.create().inBackground((c, e) -> done.add(e.getType() + " " + e.getResultCode())).forPath(root);
        Cases.expect(done.poll(Cases.WAIT, TimeUnit.SECONDS), "CREATE 0");
        one.sync().inBackground((c, e) -> done.add(e.getType() + " " + e.getResultCode())).forPath(root);
        Cases.expect(done.poll(Cases.WAIT, TimeUnit.SECONDS), "SYNC 0");
    }

    private void namespace(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        one.usingNamespace(root.substring(1)).create().forPath("/a", bytes("in"));
        Cases.expect(text(two.getData().forPath(root + "/a")), "in");
    }

    private void mutex(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        AtomicInteger inside = new AtomicInteger();
        AtomicInteger total = new AtomicInteger();
        ExecutorService threads = Executors.newFixedThreadPool(4);
        List<Future<?>> results = new ArrayList<>();
        for (int t = 0; t < 4; t++) {
            InterProcessMutex lock = new InterProcessMutex(t % 2 == 0 ? one : two, root);
            results.add(threads.submit(() -> {
                for (int i = 0; i < 20; i++) {
                    Cases.expect(lock.acquire(Cases.WAIT, TimeUnit.SECONDS), "not acquired");
                    Cases.expect(inside.incrementAndGet(), 1);
                    total.incrementAndGet();
                    inside.decrementAndGet();
                    lock.release();
                }
                return null;
            }));
        }
        for (Future<?> r : results) {
            r.get(Cases.WAIT, TimeUnit.SECONDS);
        }
        threads.shutdown();
        Cases.expect(total.get(), 80);
    }

    private void mutexWaits(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        InterProcessMutex mine = new InterProcessMutex(one, root);
        InterProcessMutex theirs = new InterProcessMutex(two, root);
        mine.acquire();
        mine.acquire(); // reentrant
        Cases.expect(theirs.acquire(50, TimeUnit.MILLISECONDS), false);
        mine.release();
        mine.release();
        Cases.expect(theirs.acquire(Cases.WAIT, TimeUnit.SECONDS), true);
        theirs.release();
    }

    private void readWriteLock(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        InterProcessReadWriteLock mine = new InterProcessReadWriteLock(one, root);
        InterProcessReadWriteLock theirs = new InterProcessReadWriteLock(two, root);
        mine.readLock().acquire();
        Cases.expect(theirs.readLock().acquire(Cases.WAIT, TimeUnit.SECONDS), true);
        theirs.readLock().release();
        Cases.expect(theirs.writeLock().acquire(50, TimeUnit.MILLISECONDS), false);
        mine.readLock().release();
        Cases.expect(theirs.writeLock().acquire(Cases.WAIT, TimeUnit.SECONDS), true);
        Cases.expect(mine.readLock().acquire(50, TimeUnit.MILLISECONDS), false);
        theirs.writeLock().release();
    }

    private void semaphore(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        InterProcessSemaphoreV2 mine = new InterProcessSemaphoreV2(one, root, 2);
        InterProcessSemaphoreV2 theirs = new InterProcessSemaphoreV2(two, root, 2);
        Lease a = mine.acquire(Cases.WAIT, TimeUnit.SECONDS);
        Lease b = theirs.acquire(Cases.WAIT, TimeUnit.SECONDS);
        Cases.expect(a != null && b != null, "no lease");
        Cases.expect(mine.acquire(50, TimeUnit.MILLISECONDS), null);
        theirs.returnLease(b);
        Lease c = mine.acquire(Cases.WAIT, TimeUnit.SECONDS);
        Cases.expect(c != null, "no lease after one was returned");
        mine.returnAll(Arrays.asList(a, c));
    }

    private void leaderLatch(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        LeaderLatch first = new LeaderLatch(one, root, "one");
        LeaderLatch second = new LeaderLatch(two, root, "two");
        first.start();
        Cases.expect(first.await(Cases.WAIT, TimeUnit.SECONDS), true);
        second.start();
        Cases.eventually("two participants", () -> second.getParticipants().size() == 2);
        Cases.expect(second.hasLeadership(), false);
        Cases.expect(second.getLeader().getId(), "one");
        first.close();
        Cases.expect(second.await(Cases.WAIT, TimeUnit.SECONDS), true);
        second.close();
    }

    private void leaderSelector(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        LinkedBlockingQueue<String> led = new LinkedBlockingQueue<>();
        AtomicInteger leaders = new AtomicInteger();
        List<LeaderSelector> selectors = new ArrayList<>();
        for (CuratorFramework c : Arrays.asList(one, two)) {
            String name = c == one ? "one" : "two";
            LeaderSelector s = new LeaderSelector(c, root, new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework client) {
                    led.add(name + " among " + leaders.incrementAndGet());
                    leaders.decrementAndGet();
                }
            });
            s.start();
            selectors.add(s);
        }
        List<String> got = new ArrayList<>();
        got.add(led.poll(Cases.WAIT, TimeUnit.SECONDS));
        got.add(led.poll(Cases.WAIT, TimeUnit.SECONDS));
        Cases.expect(new TreeSet<>(got), new TreeSet<>(Arrays.asList("one among 1", "two among 1")));
        for (LeaderSelector s : selectors) {
            s.close();
        }
    }

    private void sharedCount(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        SharedCount mine = new SharedCount(one, root, 7);
        SharedCount theirs = new SharedCount(two, root, 7);
        mine.start();
        theirs.start();
        Cases.expect(theirs.getCount(), 7);
        mine.setCount(8);
        Cases.eventually("the count is seen", () -> theirs.getCount() == 8);
        Cases.expect(theirs.trySetCount(theirs.getVersionedValue(), 9), true);
        Cases.eventually("the count is seen", () -> mine.getCount() == 9);
        mine.close();
        theirs.close();
    }

    private void atomicLong(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(2);
        List<Future<?>> results = new ArrayList<>();
        for (CuratorFramework c : Arrays.asList(one, two)) {
            DistributedAtomicLong counter = new DistributedAtomicLong(c, root, new RetryNTimes(200, 2));
            results.add(threads.submit(() -> {
                for (int i = 0; i < 25; i++) {
                    Cases.expect(counter.increment().succeeded(), "not incremented");
                }
                return null;
            }));
        }
        for (Future<?> r : results) {
            r.get(Cases.WAIT, TimeUnit.SECONDS);
        }
        threads.shutdown();
        Cases.expect(new DistributedAtomicLong(one, root, new RetryNTimes(1, 1)).get().postValue(), 50L);
    }

    private void barrier(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        DistributedBarrier mine = new DistributedBarrier(one, root);
        mine.setBarrier();
        DistributedBarrier theirs = new DistributedBarrier(two, root);
        Cases.expect(theirs.waitOnBarrier(50, TimeUnit.MILLISECONDS), false);
        mine.removeBarrier();
        Cases.expect(theirs.waitOnBarrier(Cases.WAIT, TimeUnit.SECONDS), true);
    }

    private void doubleBarrier(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(2);
        CyclicBarrier inside = new CyclicBarrier(2);
        List<Future<Boolean>> results = new ArrayList<>();
        for (CuratorFramework c : Arrays.asList(one, two)) {
            results.add(threads.submit(() -> {
                DistributedDoubleBarrier b = new DistributedDoubleBarrier(c, root, 2);
                boolean entered = b.enter(Cases.WAIT, TimeUnit.SECONDS);
                inside.await(Cases.WAIT, TimeUnit.SECONDS);
                return entered && b.leave(Cases.WAIT, TimeUnit.SECONDS);
            }));
        }
        for (Future<Boolean> r : results) {
            Cases.expect(r.get(Cases.WAIT, TimeUnit.SECONDS), true);
        }
        threads.shutdown();
    }

    @SuppressWarnings("deprecation") // much used still
    private void pathChildrenCache(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        one.create().forPath(root);
        one.create().forPath(root + "/a", bytes("1"));
        LinkedBlockingQueue<String> events = new LinkedBlockingQueue<>();
        try (PathChildrenCache cache = new PathChildrenCache(two, root, true)) {
            cache.getListenable().addListener((c, e) -> {
                if (e.getType() != PathChildrenCacheEvent.Type.CONNECTION_RECONNECTED) {
                    events.add(e.getType() + " " + e.getData().getPath().substring(root.length()) + " " + text(e.getData().getData()));
                }
            });
            cache.start(PathChildrenCache.StartMode.BUILD_INITIAL_CACHE);
            Cases.expect(cache.getCurrentData().size(), 1);
            one.create().forPath(root + "/b", bytes("2"));
            Cases.expect(events.poll(Cases.WAIT, TimeUnit.SECONDS), "CHILD_ADDED /b 2");
            one.setData().forPath(root + "/a", bytes("3"));
            Cases.expect(events.poll(Cases.WAIT, TimeUnit.SECONDS), "CHILD_UPDATED /a 3");
            one.delete().forPath(root + "/b");
            Cases.expect(events.poll(Cases.WAIT, TimeUnit.SECONDS), "CHILD_REMOVED /b 2");
        }
    }

    private void curatorCache(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        one.create().creatingParentsIfNeeded().forPath(root + "/a/b", bytes("1"));
        CountDownLatch ready = new CountDownLatch(1);
        LinkedBlockingQueue<String> events = new LinkedBlockingQueue<>();
        try (CuratorCache cache = CuratorCache.build(two, root)) {
            cache.listenable().addListener(CuratorCacheListener.builder().forInitialized(ready::countDown).build());
            cache.listenable()
                    .addListener(CuratorCacheListener.builder()
                            .forAll((type, before, after) -> events.add(type + " "
                                    + (after == null ? before : after).getPath().substring(root.length())))
                            .afterInitialized()
                            .build());
            cache.start();
            Cases.expect(ready.await(Cases.WAIT, TimeUnit.SECONDS), "not initialized");
            Cases.expect(cache.size(), 3);
            one.create().forPath(root + "/a/c", bytes("2"));
            Cases.expect(events.poll(Cases.WAIT, TimeUnit.SECONDS), "NODE_CREATED /a/c");
            one.setData().forPath(root + "/a/b", bytes("3"));
            Cases.expect(events.poll(Cases.WAIT, TimeUnit.SECONDS), "NODE_CHANGED /a/b");
            one.delete().forPath(root + "/a/c");
            Cases.expect(events.poll(Cases.WAIT, TimeUnit.SECONDS), "NODE_DELETED /a/c");
            Cases.expect(text(cache.get(root + "/a/b").get().getData()), "3");
        }
    }

    private void persistentNode(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        try (PersistentNode node = new PersistentNode(one, CreateMode.EPHEMERAL, false, root, bytes("1"))) {
            node.start();
            Cases.expect(node.waitForInitialCreate(Cases.WAIT, TimeUnit.SECONDS), true);
            long created = two.checkExists().forPath(root).getCzxid();
            two.delete().forPath(root);
            Cases.eventually("it is back", () -> {
                Stat s = two.checkExists().forPath(root);
                return s != null && s.getCzxid() > created;
            });
            node.setData(bytes("2"));
            Cases.eventually("the data is there", () -> text(two.getData().forPath(root)).equals("2"));
        }
        Cases.expect(two.checkExists().forPath(root), null);
    }

    private void persistentTtlNode(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        PersistentTtlNode node = new PersistentTtlNode(one, root, 600, bytes("1"));
        node.start();
        Cases.expect(node.waitForInitialCreate(Cases.WAIT, TimeUnit.SECONDS), true);
        // Kept alive for longer than its time to live, then left to end.
        Thread.sleep(1500);
        Cases.expect(text(two.getData().forPath(root)), "1");
        node.close();
        Cases.eventually("it is collected", () -> two.checkExists().forPath(root) == null);
    }

    private void groupMember(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        GroupMember mine = new GroupMember(one, root, "one", bytes("1"));
        GroupMember theirs = new GroupMember(two, root, "two", bytes("2"));
        mine.start();
        theirs.start();
        Cases.eventually("both are in", () -> mine.getCurrentMembers().size() == 2 && theirs.getCurrentMembers().size() == 2);
        Cases.expect(text(mine.getCurrentMembers().get("two")), "2");
        theirs.close();
        Cases.eventually("one has left", () -> mine.getCurrentMembers().keySet().equals(Collections.singleton("one")));
        mine.close();
    }

    private void queue(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        SimpleDistributedQueue mine = new SimpleDistributedQueue(one, root);
        SimpleDistributedQueue theirs = new SimpleDistributedQueue(two, root);
        for (int i = 0; i < 5; i++) {
            mine.offer(bytes("" + i));
        }
        for (int i = 0; i < 5; i++) {
            Cases.expect(text(theirs.poll(Cases.WAIT, TimeUnit.SECONDS)), "" + i);
        }
        Cases.expect(theirs.poll(), null);
    }

    private void serviceDiscovery(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        ServiceInstance<Void> instance = ServiceInstance.<Void>builder().name("web").address("127.0.0.1").port(80).build();
        try (ServiceDiscovery<Void> mine = ServiceDiscoveryBuilder.builder(Void.class)
                        .client(one)
                        .basePath(root)
                        .thisInstance(instance)
                        .build();
                ServiceDiscovery<Void> theirs =
                        ServiceDiscoveryBuilder.builder(Void.class).client(two).basePath(root).build()) {
            theirs.start();
            mine.start();
            try (ServiceProvider<Void> provider = theirs.serviceProviderBuilder().serviceName("web").build()) {
                provider.start();
                Cases.eventually("the instance is found", () -> provider.getInstance() != null);
                Cases.expect(provider.getInstance().getPort(), 80);
                mine.unregisterService(instance);
                Cases.eventually("the instance is gone", () -> provider.getInstance() == null);
            }
        }
    }

    private void reconnect(CuratorFramework one, CuratorFramework two, String root) throws Exception {
        try (Proxy proxy = new Proxy(hosts);
                CuratorFramework shaky = connect(proxy.address());
                LeaderLatch latch = new LeaderLatch(shaky, root, "shaky")) {
            LinkedBlockingQueue<String> states = new LinkedBlockingQueue<>();
            shaky.getConnectionStateListenable().addListener((c, s) -> {
                // The first CONNECTED may be told before or after this listener is there.
                if (s != ConnectionState.CONNECTED) {
                    states.add(s.name());
                }
            });
            latch.start();
            Cases.expect(latch.await(Cases.WAIT, TimeUnit.SECONDS), true);
            long session = shaky.getZookeeperClient().getZooKeeper().getSessionId();
            proxy.cut();
            Cases.expect(states.poll(Cases.WAIT, TimeUnit.SECONDS), "SUSPENDED");
            Cases.expect(states.poll(Cases.WAIT, TimeUnit.SECONDS), "RECONNECTED");
            Cases.expect(shaky.getZookeeperClient().getZooKeeper().getSessionId(), session);
            Cases.eventually("it leads again", latch::hasLeadership);
            Cases.expect(text(two.getData().forPath(two.getChildren().forPath(root).stream().map(n -> root + "/" + n).findFirst().get())), "shaky");
        }
    }
}
