import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.github.gozkd.testkit.TestingServer;
import com.github.gozkd.testkit.junit.ConnectString;
import com.github.gozkd.testkit.junit.GozkdTest;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryOneTime;
import org.apache.zookeeper.CreateMode;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.RepeatedTest;

@GozkdTest(GozkdTest.Scope.PER_CLASS)
class PerClassTest {
    private static String address;

    @BeforeAll
    static void first(@ConnectString String connectString) {
        address = connectString;
    }

    @RepeatedTest(3)
    void eachFindsItEmpty(TestingServer server) throws Exception {
        assertEquals(address, server.getConnectString());
        assertEquals(Map.of("/", ""), server.tree("/"));
        assertTrue(server.sessions().isEmpty());
        CuratorFramework client = CuratorFrameworkFactory.newClient(address, new RetryOneTime(10));
        client.start();
        client.create().withMode(CreateMode.EPHEMERAL).forPath("/left");
        server.arm(Map.of("kind", "fail", "op", "get", "code", -101, "times", -1));
        server.kill();
        client.close();
    }
}
