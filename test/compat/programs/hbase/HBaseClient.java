import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.*;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * HBaseClient is the client of hbase.go: HBaseClient create|write|read|state. The client finds the
 * servers through ZooKeeper, and judges nothing.
 */
public final class HBaseClient {
    private static final TableName TABLE = TableName.valueOf("ids");
    private static final byte[] FAMILY = Bytes.toBytes("f");

    public static void main(String[] args) throws Exception {
        Configuration conf = HBaseConfiguration.create();
        try (Connection c = ConnectionFactory.createConnection(conf); Admin admin = c.getAdmin()) {
            switch (args[0]) {
                case "create" -> create(admin);
                case "write" -> write(c);
                case "read" -> read(c);
                case "state" -> state(admin);
                default -> throw new IllegalArgumentException(args[0]);
            }
        }
    }

    /** create makes a table with four regions, so that each region server has some. */
    private static void create(Admin admin) throws Exception {
        admin.createTable(TableDescriptorBuilder.newBuilder(TABLE).setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY)).build(),
                new byte[][] {Bytes.toBytes("2"), Bytes.toBytes("5"), Bytes.toBytes("8")});
    }

    /** write puts numbered rows until stdin has something to read, and prints each that is acknowledged. */
    private static void write(Connection c) throws Exception {
        try (Table table = c.getTable(TABLE)) {
            for (int i = 0; System.in.available() == 0;) {
                try {
                    table.put(new Put(row(i)).addColumn(FAMILY, FAMILY, Bytes.toBytes(i)));
                } catch (java.io.IOException e) {
                    System.out.println("retry " + i + " " + e);
                    Thread.sleep(100);
                    continue;
                }
                System.out.println("acked " + i++);
            }
        }
    }

    /** row spreads the rows over the regions: the last digit comes first. */
    private static byte[] row(int i) {
        return Bytes.toBytes(i % 10 + "-" + i);
    }

    private static void read(Connection c) throws Exception {
        try (Table table = c.getTable(TABLE); ResultScanner rows = table.getScanner(FAMILY)) {
            for (Result row : rows) {
                System.out.println("got " + Bytes.toInt(row.getValue(FAMILY, FAMILY)));
            }
        }
    }

    /** state prints the active master and the region servers that live, by their ports, and in the words of the explorer's card. */
    private static void state(Admin admin) throws Exception {
        System.out.println("master " + admin.getMaster().getPort());
        for (var s : admin.getRegionServers()) {
            System.out.println("server " + s.getPort());
        }
        int backups = admin.getBackupMasters().size(), servers = admin.getRegionServers().size();
        System.out.println("card a master" + (backups == 0 ? "" : " and " + backups + (backups == 1 ? " backup" : " backups")));
        System.out.println("card " + servers + (servers == 1 ? " region server" : " region servers"));
    }
}
