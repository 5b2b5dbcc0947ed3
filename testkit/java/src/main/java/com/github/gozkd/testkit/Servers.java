package com.github.gozkd.testkit;

import java.io.Closeable;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.ToIntFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** What a single server and an ensemble have in common. Methods return when their effect is complete. */
public abstract class Servers implements Closeable {
    private static final Set<Servers> OPEN = ConcurrentHashMap.newKeySet();

    final List<TestingZooKeeperServer> members = new ArrayList<>();
    private volatile String at;
    private boolean whole = true; // false: these are some members of a cluster, whose others stay down

    /** Reserves the ports, and starts the members or leaves them down. */
    Servers(List<InstanceSpec> specs, boolean start) {
        // Servers that were stopped give way to new ones: with their directories, or with their ports.
        for (Servers before : OPEN) {
            List<Member> same = before.withDirectories(specs);
            if (same.isEmpty() && !before.hasPortOf(specs)) {
                continue;
            }
            boolean down = before.areDown();
            if (!same.isEmpty() && !(down && onDisk(before.specs()))) {
                takeOver(before, same, specs);
                if (start) {
                    startMembers();
                }
                return;
            }
            if (down) {
                before.end();
            }
        }
        Object answer = Testkit.ask("POST", Testkit.url() + "/servers", request(specs, start));
        at = Testkit.url() + "/servers/" + part(answer, "id");
        for (Object place : Servers.<List<?>>part(answer, "members")) {
            String address = part(place, "client");
            InstanceSpec spec = specs.get(members.size());
            spec.assign(Integer.parseInt(address.split(":")[1]));
            members.add(new TestingZooKeeperServer(this, spec, members.size() + 1));
        }
        OPEN.add(this);
    }

    /** Goes on with these members of other servers, whose data is in memory, and closes those. */
    private void takeOver(Servers before, List<Member> same, List<InstanceSpec> specs) {
        boolean all = same.size() == specs.size() && IntStream.range(0, same.size())
                .allMatch(i -> specs.get(i).assigned() == 0 || specs.get(i).equals(same.get(i).spec)); // the same port
        if (!all || !before.areDown()) {
            throw new TestkitException("the directory of " + specs + " is that of " + same
                    + ": stop it, and use its port or -1", null);
        }
        for (Member m : same) {
            InstanceSpec spec = specs.get(members.size());
            spec.takeOver(m.spec);
            members.add(new TestingZooKeeperServer(this, spec, m.number()));
        }
        at = before.at;
        whole = before.whole && same.size() == before.members.size();
        before.at = null;
        OPEN.remove(before);
        OPEN.add(this);
    }

    /** The body of POST /servers. */
    private static Map<String, Object> request(List<InstanceSpec> specs, boolean start) {
        // The properties of this JVM, as for a server that runs in it.
        Map<String, Object> config = Map.of("ReconfigEnabled", reconfigEnabled(),
                "ReadOnlyMode", Boolean.getBoolean("readonlymode.enabled"),
                "SuperDigest", System.getProperty("zookeeper.DigestAuthenticationProvider.superDigest", ""),
                "ContainerInterval", Long.getLong("znode.container.checkIntervalMs", 0) * 1_000_000,
                "MaxClientConns", given(specs, InstanceSpec::getMaxClientCnxns).orElse(0)); // 0: as many as want
        return Map.of("ensemble", specs.size(), "down", !start, "config", config,
                "tick", given(specs, InstanceSpec::getTickTime).orElse(500) + "ms",
                "ports", specs.stream().map(InstanceSpec::assigned).collect(Collectors.toList()),
                "dirs", onDisk(specs) ? directories(specs) : List.of(),
                "tls", specs.stream().anyMatch(InstanceSpec::tls));
    }

    /** A number of the first spec that has one. */
    private static OptionalInt given(List<InstanceSpec> specs, ToIntFunction<InstanceSpec> number) {
        return specs.stream().mapToInt(number).filter(n -> n > 0).findFirst();
    }

    /** What ZooKeeper's class says, which Curator's users set: false without ZooKeeper's server classes. */
    private static boolean reconfigEnabled() {
        try {
            Class<?> config = Class.forName("org.apache.zookeeper.server.quorum.QuorumPeerConfig");
            return (Boolean) config.getMethod("isReconfigEnabled").invoke(null);
        } catch (ReflectiveOperationException | LinkageError e) {
            return false;
        }
    }

    private static boolean onDisk(List<InstanceSpec> specs) { return specs.stream().anyMatch(InstanceSpec::onDisk); }

    private static List<String> directories(List<InstanceSpec> specs) {
        return specs.stream().map(s -> s.getDataDirectory().getAbsolutePath()).collect(Collectors.toList());
    }

    List<InstanceSpec> specs() {
        return members.stream().map(Member::getInstanceSpec).collect(Collectors.toList());
    }

    /** The members with the directories of these specs, in the order of the specs. */
    private List<Member> withDirectories(List<InstanceSpec> specs) {
        List<String> ours = directories(specs());
        return directories(specs).stream().filter(ours::contains).map(d -> members.get(ours.indexOf(d)))
                .collect(Collectors.toList());
    }

    private boolean hasPortOf(List<InstanceSpec> specs) {
        return members.stream().anyMatch(m -> specs.stream().anyMatch(s -> s.assigned() == m.spec.assigned()));
    }

    private boolean areDown() { return members.stream().allMatch(Member::isDown); }

    /** The addresses for clients. */
    public String getConnectString() {
        return members.stream().map(m -> m.spec.getConnectString()).collect(Collectors.joining(","));
    }

    /** Starts the members that are down. */
    public void start() throws Exception { startMembers(); }

    private void startMembers() {
        if (whole) {
            ask("POST", "/start", null);
        } else {
            members.stream().filter(Member::isDown).forEach(Member::start);
        }
    }

    /** Stops the members. Ports and data stay. */
    public void stop() throws IOException {
        if (at != null) {
            ask("POST", "/stop", null);
        }
    }

    /** Ends the servers, and deletes their directories unless their specs say otherwise. Further calls do nothing. */
    @Override
    public void close() throws IOException {
        if (end()) {
            specs().stream().filter(InstanceSpec::deleteDataDirectoryOnClose).map(InstanceSpec::getDataDirectory)
                    .forEach(Servers::delete);
        }
    }

    private synchronized boolean end() {
        String was = at;
        at = null;
        if (was != null) {
            OPEN.remove(this);
            Testkit.ask("DELETE", was, null);
        }
        return was != null;
    }

    static void delete(File file) {
        File[] inside = file.listFiles();
        for (int i = 0; inside != null && i < inside.length; i++) {
            delete(inside[i]);
        }
        file.delete();
    }

    /** Carries the next such request out, and closes the connection in place of the reply. */
    public Fault dropReply(Op op) { return dropReply(op, ""); }

    /** The same for requests about a znode and those below, as the client names them. */
    public Fault dropReply(Op op, String path) { return arm(Map.of("kind", "dropReply", "op", op.word, "path", path)); }

    /** Holds the next such request back, and all that its client sends after it. */
    public Fault delay(Op op, Duration by) { return delay(op, "", by); }

    public Fault delay(Op op, String path, Duration by) {
        return arm(Map.of("kind", "delay", "op", op.word, "path", path, "delay", micros(by)));
    }

    /** Answers the next such request with an error code, such as -101, and does not carry it out. */
    public Fault fail(Op op, int code) { return fail(op, "", code); }

    public Fault fail(Op op, String path, int code) {
        return arm(Map.of("kind", "fail", "op", op.word, "path", path, "code", code));
    }

    /** Any fault, with the fields of POST /faults: also times, -1 for always, and session. */
    public Fault arm(Map<String, ?> fault) { return new Fault(this, number(ask("POST", "/faults", fault), "id")); }

    /** Removes all faults. */
    public void disarm() { ask("DELETE", "/faults", null); }

    /** The ids of all sessions. */
    public List<Long> sessions() {
        List<Long> all = new ArrayList<>();
        for (Object session : (List<?>) ask("GET", "/sessions", null)) {
            all.add(Long.parseUnsignedLong(Servers.<String>part(session, "id").substring(2), 16));
        }
        return all;
    }

    /** Ends a session, whose client is told that it has expired. */
    public void expireSession(long id) { ask("POST", "/sessions/0x" + Long.toHexString(id) + "/expire", null); }

    /** Breaks the connection of a session, which lives on. */
    public void cut(long id) { ask("POST", "/sessions/0x" + Long.toHexString(id) + "/disconnect", null); }

    /** Lets time pass for sessions, TTLs and containers. Connected clients count as having pinged. */
    public void advance(Duration by) { ask("POST", "/advance", Map.of("by", micros(by))); }

    /** The data of a znode and of all below it, by path; as text, null if there is none. */
    public Map<String, String> tree(String path) {
        Map<String, String> all = new TreeMap<>();
        bytes(path).forEach((p, data) -> all.put(p, data == null ? null : new String(data, StandardCharsets.UTF_8)));
        return all;
    }

    /** The same as bytes. */
    public Map<String, byte[]> bytes(String path) {
        Map<String, byte[]> all = new TreeMap<>();
        Object found = ask("GET", "/tree?path=" + URLEncoder.encode(path, StandardCharsets.UTF_8), null);
        ((Map<?, ?>) found).forEach((p, data) -> {
            boolean text = data instanceof String;
            all.put((String) p, text ? ((String) data).getBytes(StandardCharsets.UTF_8)
                    : data == null ? null : Base64.getDecoder().decode(Servers.<String>part(data, "base64")));
        });
        return all;
    }

    /** Creates these znodes and missing ones above them, or sets their data; others stay. */
    public void load(Map<String, String> tree) { ask("PUT", "/tree", tree); }

    /** Saves all znodes, for reset. */
    public long snapshot() { return number(ask("POST", "/snapshot", null), "id"); }

    /** Makes the znodes those of a snapshot again; sessions stay. Removes all faults. */
    public void reset(long snapshot) {
        disarm();
        ask("POST", "/rewind", Map.of("id", snapshot));
    }

    /** Makes the servers like new ones with the znodes of a snapshot, without faults, partitions and sessions. */
    public void renew(long snapshot) { ask("POST", "/rewind", Map.of("id", snapshot, "all", true)); }

    /** Members, sessions and znodes, for a person. */
    public String dump() { return (String) ask("GET", "/dump", null); }

    /**
     * Writes the certificate of a client CN=name, with its key, and that of the authority into a directory, and returns
     * the properties of a ZKClientConfig that uses them. The servers need a spec withTls.
     */
    public Map<String, String> clientProperties(String name, Path directory) {
        Object answer = ask("POST", "/certificate", Map.of("name", name));
        try {
            String pem = Servers.<String>part(answer, "key") + part(answer, "cert");
            Path own = Files.writeString(directory.resolve("client.pem"), pem);
            Path authority = Files.writeString(directory.resolve("ca.pem"), part(answer, "ca"));
            return Map.of("zookeeper.client.secure", "true",
                    "zookeeper.clientCnxnSocket", "org.apache.zookeeper.ClientCnxnSocketNetty",
                    "zookeeper.ssl.keyStore.location", own.toString(),
                    "zookeeper.ssl.trustStore.location", authority.toString());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Asks for a path, and returns a field of the answer. */
    <T> T get(String path, String field) { return part(ask("GET", path, null), field); }

    static long number(Object answer, String field) { return Servers.<Number>part(answer, field).longValue(); }

    @SuppressWarnings("unchecked")
    private static <T> T part(Object answer, String field) { return (T) ((Map<?, ?>) answer).get(field); }

    Object ask(String method, String path, Object body) {
        if (at == null) {
            throw new IllegalStateException("these servers are closed");
        }
        return Testkit.ask(method, at + path, body);
    }

    static String micros(Duration d) { return d.toNanos() / 1000 + "us"; }
}
