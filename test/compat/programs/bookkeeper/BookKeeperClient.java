import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.BookKeeper.DigestType;
import org.apache.bookkeeper.client.BookKeeperAdmin;
import org.apache.bookkeeper.client.LedgerEntry;
import org.apache.bookkeeper.client.LedgerHandle;
import org.apache.bookkeeper.conf.ClientConfiguration;
import org.apache.bookkeeper.conf.ServerConfiguration;

/** BookKeeperClient is the client of bookkeeper.go: BookKeeperClient COMMAND URI. It reports and judges nothing. */
public final class BookKeeperClient {
    private static final byte[] PASSWORD = "password".getBytes();
    private static final int ENTRIES = 300;

    public static void main(String[] args) throws Exception {
        if (args[0].equals("init")) {
            ServerConfiguration server = new ServerConfiguration();
            server.setMetadataServiceUri(args[1]);
            System.out.println("made " + BookKeeperAdmin.initNewCluster(server));
            return;
        }
        ClientConfiguration conf = new ClientConfiguration();
        conf.setMetadataServiceUri(args[1]);
        conf.setZkTimeout(6000);
        switch (args[0]) {
            case "write" -> write(conf);
            case "view" -> view(conf);
            case "read" -> read(conf);
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.exit(0);
    }

    /** write fills ledger after ledger until stdin has something to read, and prints each entry that is acknowledged. */
    private static void write(ClientConfiguration conf) throws Exception {
        try (BookKeeper bk = new BookKeeper(conf)) {
            while (System.in.available() == 0) {
                LedgerHandle ledger = bk.createLedger(3, 3, 2, DigestType.CRC32C, PASSWORD);
                for (int i = 0; i < ENTRIES && System.in.available() == 0; i++) {
                    String id = ledger.getId() + "/" + i;
                    ledger.addEntry(id.getBytes());
                    System.out.println("acked " + id);
                    Thread.sleep(3);
                }
                ledger.close();
            }
        }
        System.out.println("written");
    }

    /** view prints the bookies that are there, the auditor, and each bookie that has a part of a ledger. */
    private static void view(ClientConfiguration conf) throws Exception {
        try (BookKeeper bk = new BookKeeper(conf); BookKeeperAdmin admin = new BookKeeperAdmin(bk, conf)) {
            admin.getAvailableBookies().forEach(b -> System.out.println("bookie " + b));
            System.out.println("auditor " + admin.getCurrentAuditor());
            for (long id : ledgers(admin)) {
                bk.getLedgerManager().readLedgerMetadata(id).get().getValue().getAllEnsembles().values().stream()
                    .flatMap(List::stream).distinct().forEach(b -> System.out.println("holder " + b));
            }
        }
        System.out.println("viewed");
    }

    private static void read(ClientConfiguration conf) throws Exception {
        try (BookKeeper bk = new BookKeeper(conf); BookKeeperAdmin admin = new BookKeeperAdmin(bk, conf)) {
            for (long id : ledgers(admin)) {
                try (LedgerHandle ledger = bk.openLedger(id, DigestType.CRC32C, PASSWORD)) {
                    if (ledger.getLastAddConfirmed() < 0) {
                        continue;
                    }
                    for (Enumeration<LedgerEntry> e = ledger.readEntries(0, ledger.getLastAddConfirmed()); e.hasMoreElements();) {
                        System.out.println("got " + new String(e.nextElement().getEntry()));
                    }
                }
            }
        }
        System.out.println("read");
    }

    private static List<Long> ledgers(BookKeeperAdmin admin) throws Exception {
        List<Long> ids = new ArrayList<>();
        admin.listLedgers().forEach(ids::add);
        Collections.sort(ids);
        return ids;
    }
}
