package com.github.gozkd.testkit;

import com.grack.nanojson.JsonParser;
import com.grack.nanojson.JsonParserException;
import com.grack.nanojson.JsonWriter;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.math.BigInteger;
import java.net.HttpURLConnection;
import java.net.Proxy;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Locale;

/** The background process of this JVM, in which all servers run. It ends with the JVM, also if that is killed. */
final class Testkit {
    /** Kept, because it ends when its standard input is closed. */
    private static Process process;
    private static String url;

    private Testkit() {}

    static synchronized String url() {
        if (url == null) {
            try {
                url = start();
            } catch (IOException e) {
                throw new TestkitException("gozkd-testkit did not start: " + e.getMessage(), e);
            }
        }
        return url;
    }

    private static String start() throws IOException {
        process = new ProcessBuilder(program().toString(), "--stdin", "--log-level", "error")
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        InputStreamReader out = new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8);
        String line = new BufferedReader(out).readLine();
        if (line == null) {
            throw new IOException("standard error has its reason");
        }
        return line;
    }

    /** The program that GOZKD_TESTKIT names, or that of the jar for this platform, written to the user's cache once. */
    private static Path program() throws IOException {
        String set = System.getenv("GOZKD_TESTKIT");
        if (set != null && !set.isEmpty()) {
            return Paths.get(set);
        }
        String os = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String system = os.startsWith("windows") ? "windows" : os.startsWith("mac") ? "darwin" : "linux";
        String platform = system + (System.getProperty("os.arch").equals("aarch64") ? "-arm64" : "-amd64");
        String name = system.equals("windows") ? "gozkd-testkit.exe" : "gozkd-testkit";
        String at = "/gozkd-testkit/" + platform + "/";
        try (InputStream sum = Testkit.class.getResourceAsStream(at + "sha256");
                InputStream program = Testkit.class.getResourceAsStream(at + name)) {
            if (sum == null || program == null) {
                throw new IOException("no jar of the class path has the program for " + platform
                        + ": add the dependency com.github.gozkd:gozkd-testkit with the classifier " + platform
                        + ", or set GOZKD_TESTKIT to the program");
            }
            String want = new String(sum.readAllBytes(), StandardCharsets.UTF_8).trim();
            Path file = Paths.get(System.getProperty("user.home"), ".cache", "gozkd-testkit", want, name);
            if (!Files.exists(file) || !want.equals(sha256(Files.readAllBytes(file)))) {
                byte[] content = program.readAllBytes();
                if (!want.equals(sha256(content))) {
                    throw new IOException("the program in the jar for " + platform + " is damaged: its SHA-256 is "
                            + sha256(content) + ", not " + want);
                }
                Files.createDirectories(file.getParent());
                Path whole = Files.write(Files.createTempFile(file.getParent(), name, ".tmp"), content);
                whole.toFile().setExecutable(true);
                Files.move(whole, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
            }
            return file;
        }
    }

    private static String sha256(byte[] content) {
        try {
            byte[] sum = MessageDigest.getInstance("SHA-256").digest(content);
            return String.format("%064x", new BigInteger(1, sum));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e); // every JDK has it
        }
    }

    /** The answer as Map, List, String, Number, Boolean and null. */
    static Object ask(String method, String url, Object body) {
        try {
            // Not through a proxy of the environment: the servers are on this machine.
            HttpURLConnection c = (HttpURLConnection) new URL(url).openConnection(Proxy.NO_PROXY);
            c.setRequestMethod(method);
            if (body != null) {
                c.setDoOutput(true);
                c.setRequestProperty("Content-Type", "application/json");
                c.getOutputStream().write(JsonWriter.string(body).getBytes(StandardCharsets.UTF_8));
            }
            boolean good = c.getResponseCode() == 200;
            try (InputStream in = good ? c.getInputStream() : c.getErrorStream()) {
                String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
                if (!good) {
                    throw new TestkitException(JsonParser.object().from(text).getString("error"), null);
                }
                return c.getContentType().startsWith("text/") ? text : JsonParser.any().from(text);
            }
        } catch (IOException | JsonParserException e) {
            throw new TestkitException(method + " " + url + ": " + e, e);
        }
    }
}
