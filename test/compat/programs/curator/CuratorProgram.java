import java.util.Collection;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.stream.Stream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryForever;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.details.JsonInstanceSerializer;

/** CuratorProgram is a member of curator.go, or asks Curator about all members: CuratorProgram COMMAND SERVERS ARG... */
public final class CuratorProgram {
    private static final String SERVICES = "/discovery/example";
    private static final String LEADER = "/examples/leader";
    private static final String LOCK = "/examples/lock";

    public static void main(String[] args) throws Exception {
        try (CuratorFramework client = CuratorFrameworkFactory.newClient(args[1], 4000, 4000, new RetryForever(200))) {
            client.start();
            ServiceDiscovery<Void> discovery = ServiceDiscoveryBuilder.builder(Void.class).client(client).basePath(SERVICES)
                .serializer(new JsonInstanceSerializer<>(Void.class, false)).build(); // with what is disabled
            discovery.start();
            switch (args[0]) {
                case "member" -> member(client, discovery, Integer.parseInt(args[2]));
                case "card" -> card(client, discovery);
                default -> throw new IllegalArgumentException(args[0]);
            }
        }
        System.exit(0);
    }

    /** Registers an instance of each service, the second member a disabled one, and contends for the latch and the lock. */
    private static void member(CuratorFramework client, ServiceDiscovery<Void> discovery, int number) throws Exception {
        for (String name : List.of("billing", "web")) {
            discovery.registerService(ServiceInstance.<Void>builder().name(name).id(name + "-" + number).address("127.0.0.1")
                .port(9000 + number).enabled(number == 0 || name.equals("billing")).build());
        }
        new LeaderLatch(client, LEADER, "member-" + number).start();
        Executors.newSingleThreadExecutor().submit(() -> {
            new InterProcessMutex(client, LOCK).acquire();
            return null;
        });
        Thread.sleep(Long.MAX_VALUE);
    }

    /** Prints what Curator sees, in the words of the explorer's cards. */
    private static void card(CuratorFramework client, ServiceDiscovery<Void> discovery) throws Exception {
        Collection<String> names = discovery.queryForNames();
        int instances = 0;
        int disabled = 0;
        for (String name : names) {
            Collection<ServiceInstance<Void>> all = discovery.queryForInstances(name);
            instances += all.size();
            disabled += (int) all.stream().filter(i -> !i.isEnabled()).count();
        }
        System.out.println("service " + many(names.size(), "service"));
        System.out.println("service " + many(instances, "instance") + (disabled > 0 ? ", " + disabled + " disabled" : ""));
        LeaderLatch latch = new LeaderLatch(client, LEADER);
        int candidates = latch.getParticipants().size();
        int contenders = new InterProcessMutex(client, LOCK).getParticipantNodes().size();
        System.out.println("leader " + latch.getLeader().getId());
        Stream.of(many(contenders > 0 ? 1 : 0, "lock"), many(candidates > 0 ? 1 : 0, "election"),
            (candidates + contenders - 2) + " waiting").forEach(fact -> System.out.println("lock " + fact));
    }

    private static String many(int n, String one) {
        return n + " " + one + (n == 1 ? "" : "s");
    }
}
