import com.github.gozkd.testkit.TestingServer;
import java.io.Closeable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;

/** Prints how long servers take to start, beside those of Curator, and the memory of 200 servers. TestkitTest runs it in a JVM of its own. */
class StartTimes {
    private static void measure(String what, int servers, Callable<? extends Closeable> start) throws Exception {
        double[] ms = new double[servers];
        for (int i = 0; i < servers; i++) {
            long began = System.nanoTime();
            Closeable server = start.call();
            ms[i] = (System.nanoTime() - began) / 1e6;
            server.close();
        }
        double first = ms[0];
        Arrays.sort(ms, 1, servers);
        System.out.printf("%s: first server %.0f ms, next %.1f ms%n", what, first, ms[(1 + servers) / 2]);
    }

    public static void main(String[] args) throws Exception {
        measure("Java", 51, TestingServer::new);
        measure("Curator's TestingServer", 11, org.apache.curator.test.TestingServer::new);
        List<TestingServer> all = new ArrayList<>();
        while (all.size() < 200) {
            all.add(new TestingServer());
        }
        Path status = Path.of("/proc/" + ProcessHandle.current().children().findFirst().get().pid() + "/status");
        for (String line : Files.exists(status) ? Files.readAllLines(status) : List.of("VmRSS: 0 kB")) {
            if (line.startsWith("VmRSS:")) {
                System.out.printf("200 servers: %d MB%n", Long.parseLong(line.replaceAll("\\D", "")) / 1000);
            }
        }
        System.exit(0);
    }
}
