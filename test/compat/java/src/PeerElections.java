import java.util.Collection;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;

/**
 * Curator's elections. "latch" and "select" begin to stand and return; "leader MS" waits for leadership; "candidates KIND"
 * says the ids in order.
 */
final class PeerElections {
    private PeerElections() {}

    private interface Candidate {
        boolean awaitLeadership(long ms) throws Exception;
    }

    static void addTo(Map<String, Peer.Verb> verbs, CuratorFramework client) {
        verbs.put("latch", (h, a) -> {
            LeaderLatch latch = new LeaderLatch(client, a[0], a[1]);
            latch.start();
            h.object = (Candidate) ms -> latch.await(ms, TimeUnit.MILLISECONDS);
            h.holds(latch::close);
            return "";
        });
        verbs.put("select", (h, a) -> {
            CountDownLatch elected = new CountDownLatch(1);
            CountDownLatch resigned = new CountDownLatch(1);
            CountDownLatch ended = new CountDownLatch(1);
            LeaderSelector selector = new LeaderSelector(client, a[0], new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework c) throws Exception {
                    elected.countDown();
                    try {
                        resigned.await();
                    } finally {
                        ended.countDown();
                    }
                }
            });
            selector.setId(a[1]);
            selector.start();
            h.object = (Candidate) ms -> elected.await(ms, TimeUnit.MILLISECONDS);
            h.holds(() -> {
                resigned.countDown();
                if (elected.getCount() == 0) {
                    ended.await();
                }
                selector.close();
            });
            return "";
        });
        verbs.put("leader", (h, a) -> Peer.yes(h.as(Candidate.class).awaitLeadership(Long.parseLong(a[0]))));
        verbs.put("candidates", (h, a) -> ids(
                a[0].equals("latch")
                        ? new LeaderLatch(client, a[1]).getParticipants()
                        : new LeaderSelector(client, a[1], new LeaderSelectorListenerAdapter() {
                            @Override
                            public void takeLeadership(CuratorFramework c) {}
                        }).getParticipants()));
    }

    private static String ids(Collection<Participant> list) {
        return list.stream().map(Participant::getId).collect(Collectors.joining(" "));
    }
}
