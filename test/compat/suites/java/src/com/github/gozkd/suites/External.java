package com.github.gozkd.suites;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;

/** A server in a process of its own, in the place of one that the tests would run in their JVM. */
public final class External {
    private final Process process;

    private External(Process process) {
        this.process = process;
    }

    /**
     * Writes zoo.cfg into dir and starts a server with it by the zkServer.sh in the directory that the variable
     * SUITES_BIN names. The system properties of this JVM that configure a server are the server's, too.
     */
    public static External start(Path dir, Map<?, ?> keys) throws IOException {
        Files.createDirectories(dir);
        List<String> lines = new ArrayList<>();
        for (Map.Entry<?, ?> e : new TreeMap<Object, Object>(keys).entrySet()) {
            lines.add(e.getKey() + "=" + e.getValue());
        }
        Path config = dir.resolve("zoo.cfg");
        Files.write(config, lines, StandardCharsets.UTF_8);
        StringBuilder flags = new StringBuilder();
        for (String name : System.getProperties().stringPropertyNames()) {
            String value = System.getProperty(name);
            if (name.matches("(zookeeper|jute|znode|java\\.security\\.auth)\\..*|readonlymode\\.enabled") && !value.matches("(?s).*\\s.*")) {
                flags.append(" -D").append(name).append('=').append(value);
            }
        }
        ProcessBuilder b = new ProcessBuilder(System.getenv("SUITES_BIN") + "/zkServer.sh", "start-foreground", config.toString());
        b.environment().put("SERVER_JVMFLAGS", flags.toString());
        b.redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.INHERIT);
        Process process = b.start();
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
        return new External(process);
    }

    /** Waits until a port of this host accepts connections. The process must not end before. */
    public void awaitPort(int port) throws IOException {
        long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(1);
        for (;;) {
            try (Socket s = new Socket()) {
                s.connect(new InetSocketAddress("127.0.0.1", port), 1000);
                return;
            } catch (IOException e) {
                if (!process.isAlive() || System.nanoTime() > deadline) {
                    throw new IOException("the server at port " + port + " did not start; its output is above", e);
                }
            }
            try {
                Thread.sleep(20);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IOException(e);
            }
        }
    }

    /** Waits for the end of the process. */
    public void join() throws InterruptedException {
        process.waitFor();
    }

    /** Sends a signal of this name. */
    public void signal(String name) {
        try {
            new ProcessBuilder("kill", "-" + name, Long.toString(process.pid())).inheritIO().start().waitFor();
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Ends the process and waits for it. */
    public void stop() {
        process.destroy();
        join(process);
    }

    /** Ends the process as a crash does. */
    public void kill() {
        process.destroyForcibly();
        join(process);
    }

    private static void join(Process process) {
        boolean interrupted = false;
        for (;;) {
            try {
                process.waitFor();
                break;
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
