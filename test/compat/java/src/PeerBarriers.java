import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;

/** Curator's barriers. */
final class PeerBarriers {
    private PeerBarriers() {}

    static void addTo(Map<String, Peer.Verb> verbs, CuratorFramework client) {
        verbs.put("barrier-set", (h, a) -> {
            new DistributedBarrier(client, a[0]).setBarrier();
            return "";
        });
        verbs.put("barrier-remove", (h, a) -> {
            new DistributedBarrier(client, a[0]).removeBarrier();
            return "";
        });
        verbs.put("barrier-wait", (h, a) -> Peer.yes(
                new DistributedBarrier(client, a[0]).waitOnBarrier(Long.parseLong(a[1]), TimeUnit.MILLISECONDS)));
        verbs.put("enter", (h, a) -> {
            DistributedDoubleBarrier barrier = new DistributedDoubleBarrier(client, a[0], Integer.parseInt(a[1]));
            h.object = barrier;
            return Peer.yes(barrier.enter(Cases.WAIT, TimeUnit.SECONDS));
        });
        verbs.put("leave", (h, a) -> Peer.yes(h.as(DistributedDoubleBarrier.class).leave(Cases.WAIT, TimeUnit.SECONDS)));
    }
}
