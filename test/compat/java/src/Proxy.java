import java.io.Closeable;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;

/** Forwards TCP connections to a server and can cut those that are open. */
final class Proxy implements Closeable {
    private final ServerSocket listener;
    private final String host;
    private final int port;
    private final List<Socket> sockets = new ArrayList<>(); // both ends of all connections; guarded by this

    Proxy(String target) throws IOException {
        int colon = target.lastIndexOf(':');
        host = target.substring(0, colon);
        port = Integer.parseInt(target.substring(colon + 1));
        listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        daemon(this::accept);
    }

    String address() {
        return "127.0.0.1:" + listener.getLocalPort();
    }

    private void accept() {
        while (true) {
            try {
                Socket client = listener.accept();
                Socket server = new Socket(host, port);
                synchronized (this) {
                    sockets.add(client);
                    sockets.add(server);
                }
                daemon(() -> pipe(client, server));
                daemon(() -> pipe(server, client));
            } catch (IOException e) {
                if (listener.isClosed()) {
                    return;
                }
            }
        }
    }

    private static void pipe(Socket from, Socket to) {
        try (from; to) {
            from.getInputStream().transferTo(to.getOutputStream());
        } catch (IOException e) {
            // Either side is gone; closing both tells the other.
        }
    }

    private static void daemon(Runnable r) {
        Thread t = new Thread(r);
        t.setDaemon(true);
        t.start();
    }

    /** Ends all open connections. */
    synchronized void cut() throws IOException {
        for (Socket s : sockets) {
            s.close();
        }
        sockets.clear();
    }

    @Override
    public void close() throws IOException {
        listener.close();
        cut();
    }
}
