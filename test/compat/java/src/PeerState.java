import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.AtomicValue;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.nodes.GroupMember;
import org.apache.curator.framework.recipes.nodes.PersistentNode;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.framework.recipes.shared.SharedValue;
import org.apache.curator.framework.recipes.shared.SharedValueListener;
import org.apache.curator.framework.recipes.shared.SharedValueReader;
import org.apache.curator.framework.recipes.shared.VersionedValue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.RetryNTimes;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.zookeeper.CreateMode;

/** Curator's counts, shared value, group member, persistent node and service discovery. */
final class PeerState {
    private PeerState() {}

    /** A value, and what the handle has seen of it last: the value itself follows the server. */
    private static final class Seen {
        final SharedValue value;
        VersionedValue<byte[]> last;

        Seen(SharedValue value) {
            this.value = value;
        }
    }

    private interface Count {
        long add(long delta) throws Exception;
    }

    static void addTo(Map<String, Peer.Verb> verbs, CuratorFramework client) {
        verbs.put("count", (h, a) -> {
            h.object = a[0].equals("int") ? intCount(h, client, a[1]) : longCount(h, client, a[1]);
            return "";
        });
        verbs.put("add", (h, a) -> String.valueOf(h.as(Count.class).add(Long.parseLong(a[0]))));
        addValue(verbs, client);
        verbs.put("join", (h, a) -> {
            GroupMember m = new GroupMember(client, a[0], a[1], Peer.bytes(a[2]));
            m.start();
            h.object = m;
            h.holds(m::close);
            return "";
        });
        // The member's own cache, so only a handle that has joined can say.
        verbs.put("members", (h, a) -> new TreeMap<>(h.as(GroupMember.class).getCurrentMembers())
                .entrySet().stream().map(e -> e.getKey() + "=" + Peer.hex(e.getValue())).collect(Collectors.joining(" ")));
        verbs.put("node", (h, a) -> {
            PersistentNode node = new PersistentNode(client, CreateMode.EPHEMERAL, false, a[0], Peer.bytes(a[1]));
            node.start();
            Cases.expect(node.waitForInitialCreate(Cases.WAIT, TimeUnit.SECONDS), "the node was not created");
            h.holds(node::close);
            return "";
        });
        verbs.put("register", (h, a) -> {
            ServiceInstance<String> instance = ServiceInstance.<String>builder()
                    .name(a[1]).id(a[2]).address(a[3]).port(Integer.parseInt(a[4])).payload(a[5]).build();
            ServiceDiscovery<String> discovery = discovery(client, a[0]);
            discovery.registerService(instance);
            h.holds(discovery::close);
            return "";
        });
        verbs.put("instances", (h, a) -> {
            try (ServiceDiscovery<String> discovery = discovery(client, a[0])) {
                return instances(discovery.queryForInstances(a[1]));
            }
        });
        // Payloads of the types that a program has by default: none, a map, a list.
        verbs.put("register-object", (h, a) -> {
            Object payload = a[3].equals("none") ? null : a[3].equals("map") ? new TreeMap<>(Map.of("zone", "north")) : new ArrayList<>(List.of("north"));
            ServiceDiscovery<Object> discovery = objects(client, a[0]);
            discovery.registerService(
                    ServiceInstance.<Object>builder().name(a[1]).id(a[2]).port(80).payload(payload).build());
            h.holds(discovery::close);
            return "";
        });
        verbs.put("objects", (h, a) -> {
            try (ServiceDiscovery<Object> discovery = objects(client, a[0])) {
                return discovery.queryForInstances(a[1]).stream()
                        .map(i -> i.getId() + "=" + String.valueOf(i.getPayload()).replace(" ", ""))
                        .sorted()
                        .collect(Collectors.joining(" "));
            }
        });
    }

    private static void addValue(Map<String, Peer.Verb> verbs, CuratorFramework client) {
        verbs.put("value", (h, a) -> {
            SharedValue v = new SharedValue(client, a[0], Peer.bytes(a[1]));
            v.getListenable().addListener(new SharedValueListener() {
                @Override
                public void valueHasChanged(SharedValueReader r, byte[] b) {
                    synchronized (v) {
                        v.notifyAll();
                    }
                }

                @Override
                public void stateChanged(CuratorFramework c, ConnectionState s) {}
            });
            v.start();
            h.object = new Seen(v);
            h.holds(v::close);
            return "";
        });
        verbs.put("value-set", (h, a) -> {
            h.as(Seen.class).value.setValue(Peer.bytes(a[0]));
            return "";
        });
        verbs.put("value-try", (h, a) -> {
            Seen seen = h.as(Seen.class);
            return Peer.yes(seen.value.trySetValue(seen.last, Peer.bytes(a[0])));
        });
        // Until the listener was told of this value.
        verbs.put("value-await", (h, a) -> {
            Seen seen = h.as(Seen.class);
            SharedValue v = seen.value;
            byte[] want = Peer.bytes(a[0]);
            long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Long.parseLong(a[1]));
            synchronized (v) {
                while (!Arrays.equals((seen.last = v.getVersionedValue()).getValue(), want)) {
                    long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
                    if (left <= 0) {
                        return "no";
                    }
                    v.wait(left);
                }
            }
            return "yes";
        });
    }

    private static Count intCount(Peer.Handle h, CuratorFramework client, String path) throws Exception {
        SharedCount count = new SharedCount(client, path, 0);
        count.start();
        h.holds(count::close);
        return delta -> {
            // trySetCount reads the value again when it fails.
            while (true) {
                VersionedValue<Integer> seen = count.getVersionedValue();
                int next = seen.getValue() + (int) delta;
                if (count.trySetCount(seen, next)) {
                    return next;
                }
            }
        };
    }

    private static Count longCount(Peer.Handle h, CuratorFramework client, String path) throws Exception {
        DistributedAtomicLong count = new DistributedAtomicLong(
                client, path, new RetryNTimes(1, 1), PromotedToLock.builder()
                        .lockPath(path + "-lock")
                        .timeout(Cases.WAIT, TimeUnit.SECONDS)
                        .retryPolicy(new RetryNTimes(1000, 1))
                        .build());
        h.holds(() -> {});
        return delta -> {
            AtomicValue<Long> v = count.add(delta);
            Cases.expect(v.succeeded(), "add did not succeed");
            return v.postValue();
        };
    }

    private static ServiceDiscovery<String> discovery(CuratorFramework client, String base) throws Exception {
        ServiceDiscovery<String> d = ServiceDiscoveryBuilder.builder(String.class).client(client).basePath(base).build();
        d.start();
        return d;
    }

    private static ServiceDiscovery<Object> objects(CuratorFramework client, String base) throws Exception {
        ServiceDiscovery<Object> d = ServiceDiscoveryBuilder.builder(Object.class).client(client).basePath(base).build();
        d.start();
        return d;
    }

    /** id|address|port|payload|type of each, in order of their ids. */
    private static String instances(Collection<ServiceInstance<String>> list) {
        return list.stream()
                .map(i -> String.join("|", i.getId(), i.getAddress(), String.valueOf(i.getPort()), i.getPayload(),
                        i.getServiceType().name()))
                .sorted()
                .collect(Collectors.joining(" "));
    }
}
