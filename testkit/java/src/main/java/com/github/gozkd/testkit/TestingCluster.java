package com.github.gozkd.testkit;

import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/** An ensemble, with the constructors and methods of Curator's class, and faults. It must be started. */
public class TestingCluster extends Servers {
    public TestingCluster(int instanceQty) { this(makeSpecs(instanceQty)); }

    public TestingCluster(InstanceSpec... specs) { this(Arrays.asList(specs)); }

    public TestingCluster(Collection<InstanceSpec> specs) {
        super(new ArrayList<>(specs), false);
        if (specs.size() > 1) { // a single server is in no ensemble that numbers it
            members.forEach(m -> m.spec.number(m.number()));
        }
    }

    /** Members with their peers, which are all members; see partition for others. */
    public TestingCluster(Map<InstanceSpec, Collection<InstanceSpec>> specs) {
        this(specs.keySet());
        if (!specs.values().stream().allMatch(specs.keySet()::equals)) {
            throw new IllegalArgumentException("the members know all others: use partition");
        }
    }

    public static Map<InstanceSpec, Collection<InstanceSpec>> makeSpecs(int instanceQty) {
        return makeSpecs(instanceQty, true);
    }

    public static Map<InstanceSpec, Collection<InstanceSpec>> makeSpecs(int instanceQty, boolean resetServerIds) {
        if (resetServerIds) {
            InstanceSpec.reset();
        }
        Map<InstanceSpec, Collection<InstanceSpec>> specs = new LinkedHashMap<>();
        for (int i = 0; i < instanceQty; i++) {
            specs.put(InstanceSpec.newInstanceSpec(), specs.keySet());
        }
        return specs;
    }

    /** The same as members. */
    public List<TestingZooKeeperServer> getServers() { return new ArrayList<>(members); }

    public Collection<InstanceSpec> getInstances() { return specs(); }

    public List<Member> members() { return new ArrayList<>(members); }

    /** The member that leads; waits until there is one. */
    public Member leader() {
        int number = this.<Number>get("/leader", "id").intValue();
        return members.stream().filter(m -> m.number() == number).findFirst().get();
    }

    /** Cuts the links between members of different groups of numbers, such as List.of(1), List.of(2, 3). */
    @SafeVarargs
    public final void partition(List<Integer>... groups) {
        ask("POST", "/partition", Map.of("groups", Arrays.asList(groups)));
    }

    /** Restores all links. */
    public void heal() { ask("POST", "/heal", null); }

    /** Ends a member like kill -9; false: it is none of this ensemble. */
    public boolean killServer(InstanceSpec instance) throws Exception { return with(instance, Member::kill); }

    /** Stops a member if it runs, and starts it; false: it is none of this ensemble. */
    public boolean restartServer(InstanceSpec instance) throws Exception { return with(instance, Member::restart); }

    private boolean with(InstanceSpec instance, Consumer<Member> what) {
        int at = specs().indexOf(instance);
        if (at >= 0) {
            what.accept(members.get(at));
        }
        return at >= 0;
    }

    /** The member that a ZooKeeper is connected to, or null. */
    public InstanceSpec findConnectionInstance(Object client) throws Exception {
        Method m = Class.forName("org.apache.zookeeper.ZooKeeper", true, client.getClass().getClassLoader())
                .getDeclaredMethod("testableRemoteSocketAddress");
        m.setAccessible(true);
        InetSocketAddress address = (InetSocketAddress) m.invoke(client);
        return address == null ? null
                : specs().stream().filter(s -> s.getPort() == address.getPort()).findFirst().orElse(null);
    }
}
