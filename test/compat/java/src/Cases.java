import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** Named cases, how they run and report, and what they check with. */
final class Cases {
    /** Seconds until something that should happen counts as missing. */
    static final int WAIT = 15;

    /** One piece of work. It throws if the client did not get what it should. */
    interface Case {
        void run(String root) throws Exception;
    }

    interface Condition {
        boolean holds() throws Exception;
    }

    private final String prefix;
    private final Map<String, Case> cases = new LinkedHashMap<>();

    /** prefix begins the path that each case gets for itself; the case makes it. */
    Cases(String prefix) {
        this.prefix = prefix;
    }

    void add(String name, Case c) {
        if (cases.put(name, c) != null) {
            throw new IllegalArgumentException("two cases are called " + name);
        }
    }

    /** Runs all cases, prints a line for each, and returns how many failed. */
    int run() {
        int failed = 0;
        ExecutorService executor = Executors.newCachedThreadPool(r -> {
            Thread t = new Thread(r);
            t.setDaemon(true);
            return t;
        });
        for (Map.Entry<String, Case> e : cases.entrySet()) {
            String root = "/" + prefix + "-" + e.getKey();
            Future<?> result = executor.submit(() -> {
                e.getValue().run(root);
                return null;
            });
            try {
                result.get(2 * WAIT, TimeUnit.SECONDS);
                System.out.println("ok " + e.getKey());
            } catch (Exception x) {
                failed++;
                Throwable cause = x.getCause() == null ? x : x.getCause();
                System.out.println("FAIL " + e.getKey() + " " + String.valueOf(cause).replace('\n', ' '));
                cause.printStackTrace();
            }
        }
        executor.shutdownNow();
        return failed;
    }

    static void expect(Object got, Object want) {
        if (got == null ? want != null : !got.equals(want)) {
            throw new AssertionError("got " + got + ", want " + want);
        }
    }

    static void expect(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }

    /** Returns the exception of that class that the call throws. */
    static <T extends Exception> T expectThrows(Class<T> want, Callable<?> call) {
        Object got;
        try {
            got = call.call();
        } catch (Exception e) {
            if (want.isInstance(e)) {
                return want.cast(e);
            }
            throw new AssertionError("got " + e + ", want " + want.getSimpleName(), e);
        }
        throw new AssertionError("got " + got + ", want " + want.getSimpleName());
    }

    static void eventually(String what, Condition condition) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT);
        while (!condition.holds()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("never came true: " + what);
            }
            Thread.sleep(5);
        }
    }
}
