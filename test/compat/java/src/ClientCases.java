import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.OpResult;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.admin.ZooKeeperAdmin;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.ClientInfo;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

/** What ZooKeeper's own Java client can do. */
final class ClientCases {
    private static final int SESSION_MS = 10_000;

    private final String hosts;
    private final String superPassword;

    ClientCases(String hosts, String superPassword) {
        this.hosts = hosts;
        this.superPassword = superPassword;
    }

    /** Work that needs a connected client and a znode of its own. */
    private interface Work {
        void run(ZooKeeper zk, String root) throws Exception;
    }

    void addTo(Cases cases) {
        add(cases, "create_modes", this::createModes);
        add(cases, "create_with_stat", this::createWithStat);
        add(cases, "container", this::container);
        add(cases, "ttl", this::ttl);
        add(cases, "data", this::data);
        add(cases, "null_data", this::nullData);
        add(cases, "errors", this::errors);
        add(cases, "children", this::children);
        add(cases, "multi_commits", this::multiCommits);
        add(cases, "multi_rolls_back", this::multiRollsBack);
        add(cases, "multi_read", this::multiRead);
        add(cases, "transaction", this::transaction);
        add(cases, "acl", this::acl);
        add(cases, "superuser", this::superuser);
        add(cases, "who_am_i", this::whoAmI);
        add(cases, "ephemerals", this::ephemerals);
        add(cases, "all_children_number", this::allChildrenNumber);
        add(cases, "watches", this::watches);
        add(cases, "watch_persistent", this::watchPersistent);
        add(cases, "watch_recursive", this::watchRecursive);
        add(cases, "remove_watches", this::removeWatches);
        add(cases, "config", this::config);
        add(cases, "reconfig", this::reconfig);
        add(cases, "sync", this::sync);
        add(cases, "asynchronous", this::asynchronous);
        add(cases, "large_data", this::largeData);
        add(cases, "session_moves", this::sessionMoves);
        add(cases, "reconnect_with_watches", this::reconnectWithWatches);
        add(cases, "session_expired_event", this::sessionExpiredEvent);
        add(cases, "chroot", this::chroot);
    }

    private void add(Cases cases, String name, Work work) {
        cases.add(name, root -> {
            try (ZooKeeper zk = connect(new Events())) {
                zk.create(root, bytes("data"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT);
                work.run(zk, root);
            }
        });
    }

    /** Collects events for waiting. */
    private static final class Events implements Watcher {
        final LinkedBlockingQueue<WatchedEvent> nodes = new LinkedBlockingQueue<>();
        final AtomicInteger connected = new AtomicInteger();
        final AtomicInteger expired = new AtomicInteger();

        @Override
        public void process(WatchedEvent e) {
            if (e.getType() != EventType.None) {
                nodes.add(e);
            } else if (e.getState() == KeeperState.SyncConnected) {
                connected.incrementAndGet();
            } else if (e.getState() == KeeperState.Expired) {
                expired.incrementAndGet();
            }
        }

        void next(EventType type, String path) throws Exception {
            WatchedEvent e = nodes.poll(Cases.WAIT, TimeUnit.SECONDS);
            Cases.expect(e != null, "no event, want " + type + " of " + path);
            Cases.expect(e.getType() + " " + e.getPath(), type + " " + path);
        }
    }

    private ZooKeeper connect(Events events) throws Exception {
        ZooKeeper zk = new ZooKeeper(hosts, SESSION_MS, events);
        Cases.eventually("connected", () -> zk.getState() == ZooKeeper.States.CONNECTED);
        return zk;
    }

    private static byte[] bytes(String s) {
        return s.getBytes(UTF_8);
    }

    private static String make(ZooKeeper zk, String path, CreateMode mode) throws Exception {
        return zk.create(path, bytes("x"), Ids.OPEN_ACL_UNSAFE, mode);
    }

    private void createModes(ZooKeeper zk, String root) throws Exception {
        Cases.expect(make(zk, root + "/p", CreateMode.PERSISTENT), root + "/p");
        Cases.expect(make(zk, root + "/e", CreateMode.EPHEMERAL), root + "/e");
        Cases.expect(make(zk, root + "/s-", CreateMode.PERSISTENT_SEQUENTIAL), root + "/s-0000000002");
        Cases.expect(make(zk, root + "/es-", CreateMode.EPHEMERAL_SEQUENTIAL), root + "/es-0000000003");
        Cases.expect(zk.exists(root + "/e", false).getEphemeralOwner(), zk.getSessionId());
        Cases.expect(zk.exists(root + "/p", false).getEphemeralOwner(), 0L);
    }

    private void createWithStat(ZooKeeper zk, String root) throws Exception {
        Stat stat = new Stat();
        zk.create(root + "/a", bytes("12345"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT, stat);
        Cases.expect(stat, zk.exists(root + "/a", false));
        Cases.expect(stat.getDataLength(), 5);
    }

    private void awaitGone(ZooKeeper zk, String path) throws Exception {
        Events events = new Events();
        if (zk.exists(path, events) != null) {
            events.next(EventType.NodeDeleted, path);
        }
    }

    private void container(ZooKeeper zk, String root) throws Exception {
        make(zk, root + "/box", CreateMode.CONTAINER);
        make(zk, root + "/box/child", CreateMode.PERSISTENT);
        zk.delete(root + "/box/child", -1);
        awaitGone(zk, root + "/box");
    }

    private void ttl(ZooKeeper zk, String root) throws Exception {
        Stat stat = new Stat();
        zk.create(root + "/t", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, stat, 100);
        Cases.expect(stat.getEphemeralOwner(), 0L);
        Cases.expect(
                zk.create(root + "/t-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL, stat, 1_000_000),
                root + "/t-0000000001");
        awaitGone(zk, root + "/t");
    }

    private void data(ZooKeeper zk, String root) throws Exception {
        Stat stat = new Stat();
        Cases.expect(new String(zk.getData(root, false, stat), UTF_8), "data");
        Cases.expect(stat.getVersion(), 0);
        Cases.expect(zk.setData(root, bytes("more data"), 0).getVersion(), 1);
        Cases.expect(new String(zk.getData(root, false, stat), UTF_8), "more data");
        Cases.expect(stat.getDataLength(), 9);
    }

    private void nullData(ZooKeeper zk, String root) throws Exception {
        zk.setData(root, null, -1);
        Cases.expect(zk.getData(root, false, null) == null, "null came back as data");
        zk.setData(root, new byte[0], -1);
        Cases.expect(zk.getData(root, false, null).length, 0);
    }

    private void errors(ZooKeeper zk, String root) throws Exception {
        Cases.expectThrows(KeeperException.NodeExistsException.class, () -> make(zk, root, CreateMode.PERSISTENT));
        Cases.expectThrows(KeeperException.NoNodeException.class, () -> make(zk, root + "/no/a", CreateMode.PERSISTENT));
        Cases.expectThrows(KeeperException.BadVersionException.class, () -> zk.setData(root, null, 5));
        make(zk, root + "/e", CreateMode.EPHEMERAL);
        Cases.expectThrows(
                KeeperException.NoChildrenForEphemeralsException.class, () -> make(zk, root + "/e/a", CreateMode.PERSISTENT));
        Cases.expectThrows(KeeperException.NotEmptyException.class, () -> {
            zk.delete(root, -1);
            return null;
        });
        Cases.expectThrows(
                KeeperException.InvalidACLException.class,
                () -> zk.create(root + "/b", null, Collections.emptyList(), CreateMode.PERSISTENT));
        Cases.expect(zk.exists(root + "/none", false), null);
    }

    private void children(ZooKeeper zk, String root) throws Exception {
        make(zk, root + "/b", CreateMode.PERSISTENT);
        make(zk, root + "/a", CreateMode.PERSISTENT);
        Stat stat = new Stat();
        Cases.expect(new TreeSet<>(zk.getChildren(root, false, stat)), new TreeSet<>(Arrays.asList("a", "b")));
        Cases.expect(stat.getNumChildren(), 2);
        Cases.expect(stat.getCversion(), 2);
    }

    private void multiCommits(ZooKeeper zk, String root) throws Exception {
        List<OpResult> results = zk.multi(Arrays.asList(
                Op.check(root, 0),
                Op.create(root + "/a", bytes("1"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
                Op.setData(root + "/a", bytes("2"), 0),
                Op.create(root + "/a/s-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL),
                Op.create(root + "/box", null, Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER),
                Op.create(root + "/ttl", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, 1_000_000),
                Op.delete(root + "/box", -1)));
        Cases.expect(((OpResult.CreateResult) results.get(1)).getPath(), root + "/a");
        Cases.expect(((OpResult.SetDataResult) results.get(2)).getStat().getVersion(), 1);
        Cases.expect(((OpResult.CreateResult) results.get(3)).getPath(), root + "/a/s-0000000000");
        Cases.expect(results.size(), 7);
        Cases.expect(zk.exists(root + "/a", false).getCzxid(), zk.exists(root + "/ttl", false).getCzxid());
    }

    private void multiRollsBack(ZooKeeper zk, String root) throws Exception {
        KeeperException.BadVersionException e = Cases.expectThrows(
                KeeperException.BadVersionException.class,
                () -> zk.multi(Arrays.asList(
                        Op.create(root + "/a", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT),
                        Op.setData(root, null, 7),
                        Op.delete(root + "/none", -1))));
        List<Integer> codes = new ArrayList<>();
        for (OpResult r : e.getResults()) {
            codes.add(((OpResult.ErrorResult) r).getErr());
        }
        Cases.expect(
                codes, Arrays.asList(Code.OK.intValue(), Code.BADVERSION.intValue(), Code.RUNTIMEINCONSISTENCY.intValue()));
        Cases.expect(zk.exists(root + "/a", false), null);
    }

    private void multiRead(ZooKeeper zk, String root) throws Exception {
        make(zk, root + "/a", CreateMode.PERSISTENT);
        List<OpResult> results =
                zk.multi(Arrays.asList(Op.getData(root), Op.getChildren(root), Op.getData(root + "/none"), Op.getData(root + "/a")));
        Cases.expect(new String(((OpResult.GetDataResult) results.get(0)).getData(), UTF_8), "data");
        Cases.expect(((OpResult.GetChildrenResult) results.get(1)).getChildren(), Arrays.asList("a"));
        Cases.expect(((OpResult.ErrorResult) results.get(2)).getErr(), Code.NONODE.intValue());
        Cases.expect(new String(((OpResult.GetDataResult) results.get(3)).getData(), UTF_8), "x");
    }

    private void transaction(ZooKeeper zk, String root) throws Exception {
        List<OpResult> results = zk.transaction()
                .create(root + "/a", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT)
                .setData(root, bytes("t"), 0)
                .check(root, 1)
                .delete(root + "/a", 0)
                .commit();
        Cases.expect(results.size(), 4);
        Cases.expect(zk.getChildren(root, false).size(), 0);
    }

    private void acl(ZooKeeper zk, String root) throws Exception {
        Stat stat = new Stat();
        Cases.expect(zk.getACL(root, stat), Ids.OPEN_ACL_UNSAFE);
        try (ZooKeeper joe = connect(new Events())) {
            Cases.expectThrows(
                    KeeperException.InvalidACLException.class,
                    () -> joe.create(root + "/a", null, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT));
            joe.addAuthInfo("digest", bytes("joe:secret"));
            joe.create(root + "/a", bytes("mine"), Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
            Cases.expectThrows(KeeperException.NoAuthException.class, () -> zk.getData(root + "/a", false, null));
            Cases.expectThrows(KeeperException.NoAuthException.class, () -> zk.setData(root + "/a", null, -1));
            List<ACL> readable = new ArrayList<>(Ids.CREATOR_ALL_ACL);
            readable.addAll(Ids.READ_ACL_UNSAFE);
            Cases.expect(joe.setACL(root + "/a", readable, 0).getAversion(), 1);
            Cases.expectThrows(KeeperException.BadVersionException.class, () -> joe.setACL(root + "/a", readable, 0));
            Cases.expect(new String(zk.getData(root + "/a", false, null), UTF_8), "mine");
            // A reader who may not change the ACL sees no digest.
            Cases.expect(zk.getACL(root + "/a", stat).get(0).getId(), new Id("digest", "joe:x"));
        }
    }

    private void superuser(ZooKeeper zk, String root) throws Exception {
        List<ACL> nobody = Collections.singletonList(new ACL(Perms.ALL, new Id("digest", "nobody:x")));
        zk.create(root + "/a", bytes("1"), nobody, CreateMode.PERSISTENT);
        Cases.expectThrows(KeeperException.NoAuthException.class, () -> zk.getData(root + "/a", false, null));
        zk.addAuthInfo("digest", bytes("super:" + superPassword));
        Cases.expect(new String(zk.getData(root + "/a", false, null), UTF_8), "1");
    }

    private void whoAmI(ZooKeeper zk, String root) throws Exception {
        zk.addAuthInfo("digest", bytes("ann:pw"));
        List<String> got = new ArrayList<>();
        for (ClientInfo info : zk.whoAmI()) {
            got.add(info.getAuthScheme() + ":" + info.getUser());
        }
        Collections.sort(got);
        Cases.expect(got, Arrays.asList("digest:ann", "ip:127.0.0.1"));
    }

    private void ephemerals(ZooKeeper zk, String root) throws Exception {
        make(zk, root + "/e1", CreateMode.EPHEMERAL);
        make(zk, root + "/e2", CreateMode.EPHEMERAL);
        make(zk, root + "/p", CreateMode.PERSISTENT);
        Cases.expect(new TreeSet<>(zk.getEphemerals()), new TreeSet<>(Arrays.asList(root + "/e1", root + "/e2")));
        Cases.expect(zk.getEphemerals(root + "/e2"), Arrays.asList(root + "/e2"));
    }

    private void allChildrenNumber(ZooKeeper zk, String root) throws Exception {
        make(zk, root + "/a", CreateMode.PERSISTENT);
        make(zk, root + "/a/b", CreateMode.PERSISTENT);
        Cases.expect(zk.getAllChildrenNumber(root), 2);
    }

    private void watches(ZooKeeper zk, String root) throws Exception {
        Events data = new Events();
        Events child = new Events();
        Events exists = new Events();
        zk.getData(root, data, null);
        zk.getChildren(root, child);
        zk.exists(root + "/a", exists);
        make(zk, root + "/a", CreateMode.PERSISTENT);
        exists.next(EventType.NodeCreated, root + "/a");
        child.next(EventType.NodeChildrenChanged, root);
        zk.setData(root, null, -1);
        data.next(EventType.NodeDataChanged, root);
        zk.delete(root + "/a", -1);
        zk.setData(root, null, -1);
        zk.exists(root, false);
        Cases.expect(data.nodes.isEmpty() && child.nodes.isEmpty() && exists.nodes.isEmpty(), "a watch fired twice");
    }

    private void watchPersistent(ZooKeeper zk, String root) throws Exception {
        Events events = new Events();
        zk.addWatch(root, events, AddWatchMode.PERSISTENT);
        for (int i = 0; i < 3; i++) {
            zk.setData(root, null, -1);
            events.next(EventType.NodeDataChanged, root);
        }
        make(zk, root + "/a", CreateMode.PERSISTENT);
        events.next(EventType.NodeChildrenChanged, root);
        make(zk, root + "/a/b", CreateMode.PERSISTENT);
        zk.setData(root, null, -1);
        events.next(EventType.NodeDataChanged, root);
    }

    private void watchRecursive(ZooKeeper zk, String root) throws Exception {
        Events events = new Events();
        zk.addWatch(root, events, AddWatchMode.PERSISTENT_RECURSIVE);
        make(zk, root + "/a", CreateMode.PERSISTENT);
        events.next(EventType.NodeCreated, root + "/a");
        make(zk, root + "/a/b", CreateMode.PERSISTENT);
        events.next(EventType.NodeCreated, root + "/a/b");
        zk.setData(root + "/a/b", null, -1);
        events.next(EventType.NodeDataChanged, root + "/a/b");
        zk.delete(root + "/a/b", -1);
        events.next(EventType.NodeDeleted, root + "/a/b");
        zk.setData(root, null, -1);
        events.next(EventType.NodeDataChanged, root);
    }

    private void removeWatches(ZooKeeper zk, String root) throws Exception {
        Events data = new Events();
        Events persistent = new Events();
        zk.getData(root, data, null);
        zk.addWatch(root, persistent, AddWatchMode.PERSISTENT);
        zk.removeWatches(root, data, Watcher.WatcherType.Data, false);
        data.next(EventType.DataWatchRemoved, root);
        Cases.expectThrows(KeeperException.NoWatcherException.class, () -> {
            zk.removeWatches(root, data, Watcher.WatcherType.Data, false);
            return null;
        });
        zk.setData(root, null, -1);
        persistent.next(EventType.NodeDataChanged, root);
        zk.removeAllWatches(root, Watcher.WatcherType.Any, false);
        persistent.next(EventType.PersistentWatchRemoved, root);
        zk.setData(root, null, -1);
        zk.exists(root, false);
        Cases.expect(data.nodes.isEmpty() && persistent.nodes.isEmpty(), "a removed watch fired");
    }

    private void config(ZooKeeper zk, String root) throws Exception {
        Stat stat = new Stat();
        zk.getConfig(false, stat);
        Cases.expect(stat.getAversion(), -1);
    }

    private void reconfig(ZooKeeper zk, String root) throws Exception {
        try (ZooKeeperAdmin admin = new ZooKeeperAdmin(hosts, SESSION_MS, new Events())) {
            admin.addAuthInfo("digest", bytes("super:" + superPassword));
            Cases.expectThrows(
                    KeeperException.class,
                    () -> admin.reconfigure("server.9=127.0.0.1:1:2;3", null, null, -1, new Stat()));
            Cases.expect(admin.exists(root, false) != null, "the session did not survive");
        }
    }

    private void sync(ZooKeeper zk, String root) throws Exception {
        LinkedBlockingQueue<String> done = new LinkedBlockingQueue<>();
        zk.sync(root, (rc, path, context) -> done.add(rc + " " + path), null);
        Cases.expect(done.poll(Cases.WAIT, TimeUnit.SECONDS), "0 " + root);
    }

    private void asynchronous(ZooKeeper zk, String root) throws Exception {
        int n = 1000;
        List<String> got = Collections.synchronizedList(new ArrayList<>());
        CountDownLatch done = new CountDownLatch(2 * n);
        List<String> want = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            zk.create(root + "/n-", bytes("x"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_SEQUENTIAL, (rc, path, context, name) -> {
                got.add(rc + " " + name);
                done.countDown();
            }, null);
            String name = String.format("%s/n-%010d", root, i);
            want.add("0 " + name);
            zk.getData(name, false, (rc, path, context, data, stat) -> {
                got.add(rc + " read " + path);
                done.countDown();
            }, null);
            want.add("0 read " + name);
        }
        Cases.expect(done.await(Cases.WAIT, TimeUnit.SECONDS), "only " + got.size() + " answers");
        Cases.expect(got, want);
    }

    private void largeData(ZooKeeper zk, String root) throws Exception {
        byte[] data = new byte[900 * 1024];
        for (int i = 0; i < data.length; i++) {
            data[i] = (byte) (i * 31);
        }
        zk.setData(root, data, -1);
        Cases.expect(Arrays.equals(zk.getData(root, false, null), data), "the data came back changed");
    }

    private void sessionMoves(ZooKeeper zk, String root) throws Exception {
        Events events = new Events();
        try (ZooKeeper first = connect(events)) {
            make(first, root + "/e", CreateMode.EPHEMERAL);
            Events others = new Events();
            ZooKeeper second = new ZooKeeper(hosts, SESSION_MS, others, first.getSessionId(), first.getSessionPasswd());
            Cases.eventually("attached", () -> others.connected.get() > 0);
            Cases.expect(second.getSessionId(), first.getSessionId());
            // The first client, cut off, may come back and cut off the second, so closing takes as long as it takes.
            second.close();
            awaitGone(zk, root + "/e");
        }
    }

    private void reconnectWithWatches(ZooKeeper zk, String root) throws Exception {
        try (Proxy proxy = new Proxy(hosts)) {
            Events session = new Events();
            ZooKeeper other = new ZooKeeper(proxy.address(), SESSION_MS, session);
            Cases.eventually("connected", () -> session.connected.get() == 1);
            long id = other.getSessionId();
            Events data = new Events();
            Events created = new Events();
            Events persistent = new Events();
            Events recursive = new Events();
            make(other, root + "/e", CreateMode.EPHEMERAL);
            other.getData(root, data, null);
            other.exists(root + "/later", created);
            other.addWatch(root + "/p", persistent, AddWatchMode.PERSISTENT);
            other.addWatch(root + "/r", recursive, AddWatchMode.PERSISTENT_RECURSIVE);
            proxy.cut();
            zk.setData(root, bytes("while it was away"), -1);
            Cases.eventually("connected again", () -> session.connected.get() == 2);
            Cases.expect(other.getSessionId(), id);
            data.next(EventType.NodeDataChanged, root);
            // All watches are back once a request sent after them is answered.
            other.exists(root, false);
            make(zk, root + "/later", CreateMode.PERSISTENT);
            created.next(EventType.NodeCreated, root + "/later");
            make(zk, root + "/p", CreateMode.PERSISTENT);
            persistent.next(EventType.NodeCreated, root + "/p");
            make(zk, root + "/r", CreateMode.PERSISTENT);
            make(zk, root + "/r/a", CreateMode.PERSISTENT);
            recursive.next(EventType.NodeCreated, root + "/r");
            recursive.next(EventType.NodeCreated, root + "/r/a");
            Cases.expect(zk.exists(root + "/e", false).getEphemeralOwner(), id);
            other.close();
        }
    }

    private void sessionExpiredEvent(ZooKeeper zk, String root) throws Exception {
        Events events = new Events();
        ZooKeeper other = new ZooKeeper(hosts, SESSION_MS, events, 0x123456789L, new byte[16]);
        Cases.eventually("expired", () -> events.expired.get() == 1);
        Cases.expectThrows(KeeperException.SessionExpiredException.class, () -> other.exists(root, false));
        other.close();
    }

    private void chroot(ZooKeeper zk, String root) throws Exception {
        try (ZooKeeper inside = new ZooKeeper(hosts + root, SESSION_MS, new Events())) {
            Cases.expect(inside.create("/a", bytes("in"), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT), "/a");
            Events events = new Events();
            inside.getData("/a", events, null);
            zk.setData(root + "/a", null, -1);
            events.next(EventType.NodeDataChanged, "/a");
            Cases.expect(inside.getChildren("/", false), Arrays.asList("a"));
        }
    }
}
