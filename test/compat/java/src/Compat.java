import org.apache.zookeeper.Version;

/**
 * Puts the Java client, or Curator on it, through real work on one server, or Curator through faults of an ensemble.
 *
 * <p>Arguments: {@code zookeeper|curator HOST:PORT SUPERPASSWORD VERSION}, or {@code curator-faults PORTFILE - VERSION}. Prints "version V" once, then "ok NAME" or
 * "FAIL NAME why" for each case. Exits with 1 if a case failed.
 */
public final class Compat {
    private Compat() {}

    public static void main(String[] args) throws Exception {
        if (args.length != 4) {
            System.err.println("usage: Compat zookeeper|curator|curator-faults HOST:PORT|PORTFILE SUPERPASSWORD VERSION");
            System.exit(2);
        }
        Cases cases = new Cases(args[0]);
        switch (args[0]) {
            case "zookeeper":
                // The version is what runs, not what was asked for.
                System.out.println("version " + Version.getVersion());
                new ClientCases(args[1], args[2]).addTo(cases);
                break;
            case "curator":
                System.out.println("version " + args[3]);
                new CuratorCases(args[1]).addTo(cases);
                break;
            case "curator-faults":
                System.out.println("version " + args[3]);
                new CuratorFaultCases(args[1]).addTo(cases);
                break;
            default:
                System.err.println("unknown client " + args[0]);
                System.exit(2);
        }
        System.exit(cases.run() == 0 ? 0 : 1);
    }
}
