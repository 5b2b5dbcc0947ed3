import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedDelayQueue;
import org.apache.curator.framework.recipes.queue.DistributedIdQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.QueueBase;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;

/**
 * Curator's queues. "put KIND PATH DATA [PRIORITY|EPOCH_MS|ID]" puts one item. "consume KIND PATH" makes the handle a consumer,
 * and "take MS" says what it has got next, or none. Of the kind locked the item stays until "ack", or "return" gives it back; its items are in
 * PATH/entries, its locks in PATH/taken, as kazoo has them.
 */
final class PeerQueues {
    private static final QueueSerializer<byte[]> AS_IT_IS = new QueueSerializer<byte[]>() {
        @Override
        public byte[] serialize(byte[] item) {
            return item;
        }

        @Override
        public byte[] deserialize(byte[] bytes) {
            return bytes;
        }
    };

    private interface Consumer {
        byte[] take(long ms) throws Exception;
    }

    private interface Producer {
        void put(byte[] item, String[] args) throws Exception;
    }

    /** Hands on what Curator pushes, one item at a time. */
    private static final class Hand implements QueueConsumer<byte[]>, Consumer {
        private final SynchronousQueue<byte[]> items = new SynchronousQueue<>();
        private final SynchronousQueue<Boolean> acks = new SynchronousQueue<>();
        private final boolean acked;

        Hand(boolean acked) {
            this.acked = acked;
        }

        @Override
        public void consumeMessage(byte[] item) throws Exception {
            items.put(item);
            if (acked && !acks.take()) {
                throw new IllegalStateException("returned, as it was told"); // Curator puts it in again, at the end
            }
        }

        @Override
        public void stateChanged(CuratorFramework c, ConnectionState s) {}

        @Override
        public byte[] take(long ms) throws Exception {
            return items.poll(ms, TimeUnit.MILLISECONDS);
        }

        void ack(boolean done) throws Exception {
            acks.put(done);
        }
    }

    private final CuratorFramework client;
    private final Map<String, Producer> producers = new HashMap<>();

    private PeerQueues(CuratorFramework client) {
        this.client = client;
    }

    static void addTo(Map<String, Peer.Verb> verbs, CuratorFramework client) {
        PeerQueues queues = new PeerQueues(client);
        verbs.put("put", (h, a) -> {
            queues.producer(a[0], a[1]).put(Peer.bytes(a[2]), a);
            return "";
        });
        verbs.put("consume", (h, a) -> {
            queues.consume(h, a[0], a[1]);
            return "";
        });
        verbs.put("take", (h, a) -> {
            byte[] item = h.as(Consumer.class).take(Long.parseLong(a[0]));
            return item == null ? "none" : Peer.hex(item);
        });
        verbs.put("ack", (h, a) -> {
            h.as(Hand.class).ack(true);
            return "";
        });
        verbs.put("return", (h, a) -> {
            h.as(Hand.class).ack(false);
            return "";
        });
    }

    private synchronized Producer producer(String kind, String path) throws Exception {
        Producer p = producers.get(kind + path);
        if (p == null) {
            p = newProducer(kind, path);
            producers.put(kind + path, p);
        }
        return p;
    }

    private Producer newProducer(String kind, String path) throws Exception {
        if (kind.equals("simple")) {
            SimpleDistributedQueue q = new SimpleDistributedQueue(client, path);
            return (item, a) -> q.offer(item);
        }
        // Puts in the foreground: who is answered has put.
        QueueBuilder<byte[]> b = builder(kind, path, null).putInBackground(false);
        switch (kind) {
            case "queue":
            case "locked": {
                DistributedQueue<byte[]> q = started(b.buildQueue());
                return (item, a) -> q.put(item);
            }
            case "priority": {
                DistributedPriorityQueue<byte[]> q = started(b.buildPriorityQueue(0));
                return (item, a) -> q.put(item, Integer.parseInt(a[3]));
            }
            case "delay": {
                DistributedDelayQueue<byte[]> q = started(b.buildDelayQueue());
                return (item, a) -> q.put(item, Long.parseLong(a[3]));
            }
            case "id": {
                DistributedIdQueue<byte[]> q = started(b.buildIdQueue());
                return (item, a) -> q.put(item, a[3]);
            }
            default:
                throw new IllegalArgumentException("no queue " + kind);
        }
    }

    private void consume(Peer.Handle h, String kind, String path) throws Exception {
        if (kind.equals("simple")) {
            SimpleDistributedQueue q = new SimpleDistributedQueue(client, path);
            h.object = (Consumer) ms -> q.poll(ms, TimeUnit.MILLISECONDS);
            h.holds(() -> {});
            return;
        }
        Hand hand = new Hand(kind.equals("locked"));
        QueueBuilder<byte[]> b = builder(kind, path, hand);
        QueueBase<byte[]> q;
        switch (kind) {
            case "queue":
            case "locked":
                q = started(b.buildQueue());
                break;
            case "priority":
                q = started(b.buildPriorityQueue(0));
                break;
            case "delay":
                q = started(b.buildDelayQueue());
                break;
            case "id":
                q = started(b.buildIdQueue());
                break;
            default:
                throw new IllegalArgumentException("no queue " + kind);
        }
        h.object = hand;
        h.holds(q::close);
    }

    private QueueBuilder<byte[]> builder(String kind, String path, QueueConsumer<byte[]> consumer) {
        if (kind.equals("locked")) {
            return QueueBuilder.builder(client, consumer, AS_IT_IS, path + "/entries").lockPath(path + "/taken");
        }
        return QueueBuilder.builder(client, consumer, AS_IT_IS, path);
    }

    private static <Q extends QueueBase<byte[]>> Q started(Q q) throws Exception {
        q.start();
        return q;
    }
}
