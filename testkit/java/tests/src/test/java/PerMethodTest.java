import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;

import com.github.gozkd.testkit.TestingCluster;
import com.github.gozkd.testkit.TestingServer;
import com.github.gozkd.testkit.junit.ConnectString;
import com.github.gozkd.testkit.junit.GozkdTest;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;

@GozkdTest
class PerMethodTest {
    private static TestingServer last;

    private TestingServer mine;

    @BeforeEach
    void before(TestingServer server) {
        mine = server;
    }

    @RepeatedTest(2)
    void eachHasItsOwn(TestingServer server, @ConnectString String address) {
        assertEquals(mine, server);
        assertEquals(server.getConnectString(), address);
        assertEquals(Map.of("/", ""), server.tree("/"));
        server.load(Map.of("/left", "1"));
        assertNotSame(last, server);
        last = server;
    }

    @Test
    void ensemble(TestingCluster cluster) {
        assertEquals(3, cluster.getInstances().size());
        cluster.leader().kill();
        cluster.leader();
    }
}
