import java.util.Map;
import org.apache.helix.HelixManager;
import org.apache.helix.HelixManagerFactory;
import org.apache.helix.InstanceType;
import org.apache.helix.NotificationContext;
import org.apache.helix.PropertyKey;
import org.apache.helix.manager.zk.ZKHelixAdmin;
import org.apache.helix.model.ExternalView;
import org.apache.helix.model.IdealState.RebalanceMode;
import org.apache.helix.model.InstanceConfig;
import org.apache.helix.model.MasterSlaveSMD;
import org.apache.helix.model.Message;
import org.apache.helix.participant.statemachine.StateModel;
import org.apache.helix.participant.statemachine.StateModelFactory;
import org.apache.helix.participant.statemachine.StateModelInfo;
import org.apache.helix.participant.statemachine.Transition;

/** HelixClient is the client of helix.go: HelixClient COMMAND ZOOKEEPER [ARGUMENTS]. It reports and judges nothing. */
public final class HelixClient {
    private static final String CLUSTER = "cluster";
    private static final int PARTITIONS = 12;

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "setup" -> setup(args[1], Integer.parseInt(args[2]));
            case "resource" -> resource(args[1], args[2]);
            case "participant" -> participant(args[1], args[2]);
            case "view" -> view(args[1]);
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.exit(0);
    }

    private static void setup(String zooKeeper, int participants) {
        ZKHelixAdmin admin = new ZKHelixAdmin(zooKeeper);
        admin.addCluster(CLUSTER);
        admin.addStateModelDef(CLUSTER, "MasterSlave", MasterSlaveSMD.build());
        for (int i = 0; i < participants; i++) {
            InstanceConfig instance = new InstanceConfig("participant-" + i);
            instance.setHostName("127.0.0.1");
            instance.setPort(Integer.toString(i + 1));
            instance.setInstanceEnabled(true);
            admin.addInstance(CLUSTER, instance);
        }
        admin.close();
    }

    private static void resource(String zooKeeper, String name) {
        ZKHelixAdmin admin = new ZKHelixAdmin(zooKeeper);
        admin.addResource(CLUSTER, name, PARTITIONS, "MasterSlave", RebalanceMode.FULL_AUTO.name());
        admin.rebalance(CLUSTER, name, 2);
        admin.close();
    }

    /** participant joins the cluster and stays until it is killed. */
    private static void participant(String zooKeeper, String name) throws Exception {
        HelixManager manager = HelixManagerFactory.getZKHelixManager(CLUSTER, name, InstanceType.PARTICIPANT, zooKeeper);
        manager.getStateMachineEngine().registerStateModelFactory("MasterSlave", new StateModelFactory<Replica>() {
            @Override
            public Replica createNewStateModel(String resource, String partition) {
                return new Replica(partition);
            }
        });
        manager.connect();
        System.out.println("joined " + name);
        Thread.currentThread().join();
    }

    /** view prints the participants that are alive, the controller, and the state of each replica. */
    private static void view(String zooKeeper) throws Exception {
        HelixManager manager = HelixManagerFactory.getZKHelixManager(CLUSTER, "viewer", InstanceType.SPECTATOR, zooKeeper);
        manager.connect();
        PropertyKey.Builder keys = manager.getHelixDataAccessor().keyBuilder();
        manager.getHelixDataAccessor().getChildNames(keys.liveInstances()).forEach(i -> System.out.println("alive " + i));
        var leader = manager.getHelixDataAccessor().getProperty(keys.controllerLeader());
        System.out.println("controller " + (leader == null ? "none" : leader.getId()));
        for (String resource : manager.getHelixDataAccessor().getChildNames(keys.externalViews())) {
            ExternalView view = manager.getHelixDataAccessor().getProperty(keys.externalView(resource));
            for (String partition : view.getPartitionSet()) {
                for (Map.Entry<String, String> e : view.getStateMap(partition).entrySet()) {
                    System.out.println("replica " + partition + " " + e.getKey() + " " + e.getValue());
                }
            }
        }
        manager.disconnect();
    }

    /** Replica prints the times at which its mastership of a partition begins and ends. */
    @StateModelInfo(initialState = "OFFLINE", states = {"MASTER", "SLAVE"})
    public static final class Replica extends StateModel {
        private final String partition;

        Replica(String partition) {
            this.partition = partition;
        }

        @Transition(from = "OFFLINE", to = "SLAVE")
        public void onBecomeSlaveFromOffline(Message m, NotificationContext c) { }

        @Transition(from = "SLAVE", to = "MASTER")
        public void onBecomeMasterFromSlave(Message m, NotificationContext c) {
            System.out.println("begin " + partition + " " + System.currentTimeMillis());
        }

        @Transition(from = "MASTER", to = "SLAVE")
        public void onBecomeSlaveFromMaster(Message m, NotificationContext c) {
            System.out.println("end " + partition + " " + System.currentTimeMillis());
        }

        @Transition(from = "SLAVE", to = "OFFLINE")
        public void onBecomeOfflineFromSlave(Message m, NotificationContext c) { }

        @Transition(from = "OFFLINE", to = "DROPPED")
        public void onBecomeDroppedFromOffline(Message m, NotificationContext c) { }

        @Override
        public void reset() {
            // The session expired, and the mastership with the session.
            System.out.println("end " + partition + " " + System.currentTimeMillis());
        }
    }
}
