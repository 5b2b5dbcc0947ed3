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
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiPredicate;
import java.util.stream.Collectors;

/** What a single server and an ensemble have in common. Methods return when their effect is complete. */
public abstract class Servers implements Closeable {
    private static final Set<Servers> OPEN = ConcurrentHashMap.newKeySet();

    final List<TestingZooKeeperServer> members = new ArrayList<>();
    private volatile String at;
    private boolean whole = true; // false: these are some members of a cluster, whose others stay down

    /** Reserves the ports, and starts the members or leaves them down. */
    Servers(List<InstanceSpec> specs, boolean start) {
        specs.forEach(spec -> members.add(new TestingZooKeeperServer(this, spec, members.size() + 1)));
        // A server that was stopped gives way to another one: with its directory, or with its port.
        for (Servers before : OPEN) {
            boolean port = before.shares(specs, (one, other) -> one.assigned() == other.assigned());
            boolean data = before.shares(specs, (one, other) -> one.getDataDirectory().equals(other.getDataDirectory()));
            boolean down = (port || data) && before.members.stream().allMatch(Member::isDown);
            // All members, or some.
            List<TestingZooKeeperServer> same = specs.stream().flatMap(spec -> before.members.stream().filter(m -> (spec.assigned() == 0
                    || spec.assigned() == m.spec.assigned()) && spec.getDataDirectory().equals(m.spec.getDataDirectory()))).collect(Collectors.toList());
            boolean adopt = down && same.size() == specs.size();
            if (data && !(down && before.onDisk() || adopt)) {
                throw new TestkitException("the directory of " + specs + " is that of " + before.members + ": stop it, and use its port or -1", null);
            }
            if (data && adopt && !before.onDisk()) {
                takeOver(before, same);
                if (start) {
                    startMembers();
                }
                return;
            }
            if (down) {
                before.end();
            }
        }
        at = Testkit.url() + "/servers/" + begin(specs, start);
        OPEN.add(this);
    }

    /** Goes on with these members of other servers, which are down and are closed from now on. */
    private void takeOver(Servers before, List<TestingZooKeeperServer> same) {
        for (int i = 0; i < same.size(); i++) {
            InstanceSpec spec = members.get(i).spec;
            spec.assign(same.get(i).spec.assigned());
            members.set(i, new TestingZooKeeperServer(this, spec, same.get(i).number()));
        }
        at = before.at;
        whole = before.whole && same.size() == before.members.size();
        before.at = null;
        OPEN.remove(before);
        OPEN.add(this);
    }

    /** Asks for new servers, and returns their id. */
    private static long begin(List<InstanceSpec> specs, boolean start) {
        Map<String, Object> body = new LinkedHashMap<>();
        Map<String, Object> config = new LinkedHashMap<>();
        for (InstanceSpec spec : specs) {
            if (spec.getTickTime() > 0) {
                body.put("tick", spec.getTickTime() + "ms");
            }
            if (spec.getMaxClientCnxns() > 0) {
                config.put("MaxClientConns", spec.getMaxClientCnxns());
            }
        }
        // The properties of this JVM, as for a server that runs in it.
        config.put("ReconfigEnabled", reconfigEnabled());
        config.put("ReadOnlyMode", Boolean.getBoolean("readonlymode.enabled"));
        config.put("SuperDigest", System.getProperty("zookeeper.DigestAuthenticationProvider.superDigest", ""));
        config.put("ContainerInterval", Long.getLong("znode.container.checkIntervalMs", 0) * 1_000_000);
        body.put("config", config);
        body.put("ensemble", specs.size());
        body.put("ports", specs.stream().map(InstanceSpec::assigned).collect(Collectors.toList()));
        if (specs.stream().anyMatch(InstanceSpec::onDisk)) {
            body.put("dirs", specs.stream().map(s -> s.getDataDirectory().getAbsolutePath()).collect(Collectors.toList()));
        }
        body.put("tls", specs.stream().anyMatch(InstanceSpec::tls));
        body.put("down", !start);
        Object answer = Testkit.ask("POST", Testkit.url() + "/servers", body);
        List<Object> places = part(answer, "members");
        for (int i = 0; i < specs.size(); i++) {
            String address = part(places.get(i), "client");
            specs.get(i).assign(Integer.parseInt(address.substring(address.lastIndexOf(':') + 1)));
        }
        return part(answer, "id");
    }

    /** What ZooKeeper's class says, which Curator's users set: false without ZooKeeper's server classes. */
    private static boolean reconfigEnabled() {
        try {
            return (Boolean) Class.forName("org.apache.zookeeper.server.quorum.QuorumPeerConfig").getMethod("isReconfigEnabled").invoke(null);
        } catch (ReflectiveOperationException | LinkageError e) {
            return false;
        }
    }

    private boolean onDisk() { return members.stream().anyMatch(m -> m.spec.onDisk()); }

    private boolean shares(List<InstanceSpec> others, BiPredicate<InstanceSpec, InstanceSpec> what) {
        return members.stream().anyMatch(m -> others.stream().anyMatch(o -> what.test(m.spec, o)));
    }

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
            members.stream().map(Member::getInstanceSpec).filter(InstanceSpec::deleteDataDirectoryOnClose).forEach(s -> delete(s.getDataDirectory()));
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

    public Fault fail(Op op, String path, int code) { return arm(Map.of("kind", "fail", "op", op.word, "path", path, "code", code)); }

    /** Any fault, with the fields of POST /faults: also times, -1 for always, and session. */
    public Fault arm(Map<String, ?> fault) { return new Fault(this, part(ask("POST", "/faults", fault), "id")); }

    /** Removes all faults. */
    public void disarm() { ask("DELETE", "/faults", null); }

    /** The ids of all sessions. */
    public List<Long> sessions() {
        return ((List<?>) ask("GET", "/sessions", null)).stream().map(s -> Long.parseUnsignedLong(Servers.<String>part(s, "id").substring(2), 16))
                .collect(Collectors.toList());
    }

    /** Ends a session, whose client is told that it has expired. */
    public void expireSession(long id) { ask("POST", "/sessions/0x" + Long.toHexString(id) + "/expire", null); }

    /** Breaks the connection of a session, which lives on. */
    public void cut(long id) { ask("POST", "/sessions/0x" + Long.toHexString(id) + "/disconnect", null); }

    /** Lets time pass for sessions, TTLs and containers. Connected clients count as having pinged. */
    public void advance(Duration by) { ask("POST", "/advance", Map.of("by", micros(by))); }

    /** The data of a znode and of all below it, by path; as text, null if there is none. */
    public Map<String, String> tree(String path) {
        Map<String, String> all = new LinkedHashMap<>();
        bytes(path).forEach((p, data) -> all.put(p, data == null ? null : new String(data, StandardCharsets.UTF_8)));
        return all;
    }

    /** The same as bytes. */
    public Map<String, byte[]> bytes(String path) {
        Map<String, byte[]> all = new LinkedHashMap<>();
        Object found = ask("GET", "/tree?path=" + URLEncoder.encode(path, StandardCharsets.UTF_8), null);
        ((Map<?, ?>) found).forEach((p, data) -> all.put((String) p, data instanceof Map ? Base64.getDecoder().decode(Servers.<String>part(data, "base64"))
                : data == null ? null : ((String) data).getBytes(StandardCharsets.UTF_8)));
        return all;
    }

    /** Creates these znodes and missing ones above them, or sets their data; others stay. */
    public void load(Map<String, String> tree) { ask("PUT", "/tree", tree); }

    /** Saves all znodes, for reset. */
    public long snapshot() { return part(ask("POST", "/snapshot", null), "id"); }

    /** Makes the znodes those of a snapshot again; sessions stay. Removes all faults. */
    public void reset(long snapshot) {
        disarm();
        ask("POST", "/rewind", Map.of("id", snapshot));
    }

    /** Makes the servers like new ones with the znodes of a snapshot: all run, without faults, partitions and sessions. */
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
            Path own = Files.writeString(directory.resolve("client.pem"), Servers.<String>part(answer, "key") + part(answer, "cert"));
            Path authority = Files.writeString(directory.resolve("ca.pem"), part(answer, "ca"));
            return Map.of("zookeeper.client.secure", "true", "zookeeper.clientCnxnSocket", "org.apache.zookeeper.ClientCnxnSocketNetty",
                    "zookeeper.ssl.keyStore.location", own.toString(), "zookeeper.ssl.trustStore.location", authority.toString());
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Asks for a path, and returns a field of the answer. */
    <T> T get(String path, String field) { return part(ask("GET", path, null), field); }

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
