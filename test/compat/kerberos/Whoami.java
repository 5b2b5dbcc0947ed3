import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.ClientInfo;

/**
 * Authenticates by its JAAS file, prints the identities of the connection, and creates and reads a
 * znode for its sasl identity alone. Argument: host:port.
 */
public class Whoami {
    public static void main(String[] args) throws Exception {
        CountDownLatch decided = new CountDownLatch(1);
        AtomicReference<String> how = new AtomicReference<>("timeout");
        ZooKeeper zk = new ZooKeeper(args[0], 10000, event -> {
            Watcher.Event.KeeperState state = event.getState();
            if (state == Watcher.Event.KeeperState.SaslAuthenticated || state == Watcher.Event.KeeperState.AuthFailed) {
                how.compareAndSet("timeout", state.toString());
                decided.countDown();
            }
        });
        decided.await(20, TimeUnit.SECONDS);
        System.out.println("state " + how.get());
        if (how.get().equals("SaslAuthenticated")) {
            for (ClientInfo info : zk.whoAmI()) {
                System.out.println("id " + info.getAuthScheme() + ":" + info.getUser());
            }
            String path = zk.create("/mine", new byte[] {1}, ZooDefs.Ids.CREATOR_ALL_ACL, CreateMode.EPHEMERAL_SEQUENTIAL);
            System.out.println("acl " + zk.getACL(path, null).get(0).getId().toString().trim() + " " + zk.getData(path, false, null).length);
            zk.close();
        }
        System.exit(0);
    }
}
