import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * Curator's part in recipes that processes in several languages share: does what it is told, line by line.
 *
 * <p>Arguments: {@code HOST:PORT TIMEOUT_MS VERSION}. Says "ready VERSION" once it is connected. Then reads requests
 * "ID HANDLE VERB ARG..." and answers "ID ok WORD..." or "ID err why". Requests of one handle run one after another on a
 * thread of the handle's own, as Curator's locks belong to threads; handles run side by side. Data are in hex, "-" when
 * empty. Ends with its standard input.
 */
public final class Peer {
    /** What a verb does. It returns the words of the answer. */
    interface Verb {
        String run(Handle h, String[] args) throws Exception;
    }

    /** Lets go of what a handle holds. */
    interface Release {
        void run() throws Exception;
    }

    /** One thread of work in this process, with what it holds. */
    static final class Handle {
        final ExecutorService thread = Executors.newSingleThreadExecutor(r -> {
            Thread t = new Thread(r);
            t.setDaemon(true);
            return t;
        });
        /** What the handle works with: a count, a value, a consumer. */
        Object object;

        private Release release;

        void holds(Release r) {
            if (release != null) {
                throw new IllegalStateException("the handle holds something already");
            }
            release = r;
        }

        void letGo() throws Exception {
            if (release == null) {
                throw new IllegalStateException("the handle holds nothing");
            }
            Release r = release;
            release = null;
            r.run();
        }

        <T> T as(Class<T> type) {
            return type.cast(object);
        }
    }

    private final Map<String, Verb> verbs = new HashMap<>();
    private final Map<String, Handle> handles = new HashMap<>();
    private final PrintStream out;

    private Peer(CuratorFramework client, PrintStream out) {
        this.out = out;
        verbs.put("release", (h, a) -> {
            h.letGo();
            return "";
        });
        verbs.put("get", (h, a) -> hex(client.getData().forPath(a[0])));
        verbs.put("set", (h, a) -> {
            client.setData().forPath(a[0], bytes(a[1]));
            return "";
        });
        PeerLocks.addTo(verbs, client);
        PeerElections.addTo(verbs, client);
        PeerQueues.addTo(verbs, client);
        PeerBarriers.addTo(verbs, client);
        PeerState.addTo(verbs, client);
        PeerGuarded.addTo(verbs, client);
    }

    public static void main(String[] args) throws Exception {
        // Nothing else may write between the answers.
        PrintStream out = System.out;
        System.setOut(System.err);
        int timeout = Integer.parseInt(args[1]);
        CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], timeout, timeout, new ExponentialBackoffRetry(50, 5));
        client.start();
        if (!client.blockUntilConnected(Cases.WAIT, TimeUnit.SECONDS)) {
            throw new IllegalStateException("not connected");
        }
        Peer peer = new Peer(client, out);
        peer.answer(0, "ready " + args[2]);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            peer.accept(line.split(" "));
        }
        client.close();
        System.exit(0);
    }

    private void accept(String[] words) {
        int id = Integer.parseInt(words[0]);
        Verb verb = verbs.get(words[2]);
        if (verb == null) {
            answer(id, "err no verb " + words[2]);
            return;
        }
        String[] args = Arrays.copyOfRange(words, 3, words.length);
        Handle h = handles.computeIfAbsent(words[1], n -> new Handle());
        h.thread.execute(() -> {
            try {
                answer(id, ("ok " + verb.run(h, args)).trim());
            } catch (Throwable e) {
                e.printStackTrace();
                answer(id, "err " + String.valueOf(e).replace('\n', ' '));
            }
        });
    }

    private synchronized void answer(int id, String words) {
        out.println(id + " " + words);
        out.flush();
    }

    static byte[] bytes(String hex) {
        if (hex.equals("-")) {
            return new byte[0];
        }
        byte[] b = new byte[hex.length() / 2];
        for (int i = 0; i < b.length; i++) {
            b[i] = (byte) Integer.parseInt(hex.substring(2 * i, 2 * i + 2), 16);
        }
        return b;
    }

    static String hex(byte[] b) {
        if (b.length == 0) {
            return "-";
        }
        StringBuilder s = new StringBuilder();
        for (byte x : b) {
            s.append(String.format("%02x", x));
        }
        return s.toString();
    }

    static String yes(boolean b) {
        return b ? "yes" : "no";
    }
}
