package com.github.gozkd.testkit;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.math.BigInteger;
import java.net.HttpURLConnection;
import java.net.Proxy;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Locale;
import java.util.Map;

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
        process = new ProcessBuilder(program().toString(), "--stdin", "--log-level", "error").redirectError(ProcessBuilder.Redirect.INHERIT).start();
        String line = new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8)).readLine();
        if (line == null) {
            throw new IOException("standard error has its reason");
        }
        return line;
    }

    /** The program that GOZKD_TESTKIT names, or that of the jar for this platform, written to the user's cache once. */
    static Path program() throws IOException {
        String set = System.getenv("GOZKD_TESTKIT");
        if (set != null && !set.isEmpty()) {
            return Paths.get(set);
        }
        String os = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String arch = System.getProperty("os.arch");
        String platform = (os.startsWith("windows") ? "windows" : os.startsWith("mac") ? "darwin" : "linux")
                + (arch.equals("aarch64") ? "-arm64" : "-amd64");
        String name = platform.startsWith("windows") ? "gozkd-testkit.exe" : "gozkd-testkit";
        String at = "/gozkd-testkit/" + platform + "/";
        try (InputStream sum = Testkit.class.getResourceAsStream(at + "sha256"); InputStream program = Testkit.class.getResourceAsStream(at + name)) {
            if (sum == null || program == null) {
                throw new IOException("no jar of the class path has the program for " + platform + ": add the dependency "
                        + "com.github.gozkd:gozkd-testkit with the classifier " + platform + ", or set GOZKD_TESTKIT to the program");
            }
            String want = new String(sum.readAllBytes(), StandardCharsets.UTF_8).trim();
            Path file = Paths.get(System.getProperty("user.home"), ".cache", "gozkd-testkit", want, name);
            if (!Files.exists(file) || !want.equals(copy(Files.newInputStream(file), OutputStream.nullOutputStream()))) {
                Files.createDirectories(file.getParent());
                Path whole = Files.createTempFile(file.getParent(), name, ".tmp");
                String got = copy(program, Files.newOutputStream(whole));
                if (!want.equals(got)) {
                    Files.delete(whole);
                    throw new IOException("the program in the jar for " + platform + " is damaged: its SHA-256 is " + got + ", not " + want);
                }
                whole.toFile().setExecutable(true);
                Files.move(whole, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
            }
            return file;
        }
    }

    /** Copies from one to the other, closes both, and returns the SHA-256. */
    private static String copy(InputStream from, OutputStream to) throws IOException {
        try (DigestInputStream in = new DigestInputStream(from, MessageDigest.getInstance("SHA-256")); OutputStream out = to) {
            in.transferTo(out);
            return String.format("%064x", new BigInteger(1, in.getMessageDigest().digest()));
        } catch (NoSuchAlgorithmException e) {
            throw new IOException(e); // every JDK has it
        }
    }

    static Object ask(String method, String url, Object body) {
        try {
            // Not through a proxy of the environment: the servers are on this machine.
            HttpURLConnection c = (HttpURLConnection) new URL(url).openConnection(Proxy.NO_PROXY);
            c.setRequestMethod(method);
            if (body != null) {
                c.setDoOutput(true);
                c.setRequestProperty("Content-Type", "application/json");
                c.getOutputStream().write(Json.of(body).getBytes(StandardCharsets.UTF_8));
            }
            boolean good = c.getResponseCode() == 200;
            try (InputStream in = good ? c.getInputStream() : c.getErrorStream()) {
                String text = new String(in.readAllBytes(), StandardCharsets.UTF_8);
                if (!good) {
                    throw new TestkitException((String) ((Map<?, ?>) Json.parse(text)).get("error"), null);
                }
                return c.getContentType().startsWith("text/") ? text : Json.parse(text);
            }
        } catch (IOException e) {
            throw new TestkitException(method + " " + url + ": " + e, e);
        }
    }
}
