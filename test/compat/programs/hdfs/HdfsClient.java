import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/** HdfsClient is the client of hdfs.go: HdfsClient write|read. It reports and judges nothing. */
public final class HdfsClient {
    private static final Path ROOT = new Path("/ids");

    public static void main(String[] args) throws Exception {
        Configuration conf = new Configuration();
        conf.addResource("hdfs-site.xml");
        try (FileSystem fs = FileSystem.get(conf)) {
            switch (args[0]) {
                case "write" -> write(fs);
                case "read" -> read(fs);
                default -> throw new IllegalArgumentException(args[0]);
            }
        }
    }

    /** write makes numbered directories until stdin has something to read, and prints each that is acknowledged. */
    private static void write(FileSystem fs) throws Exception {
        for (int i = 0; System.in.available() == 0;) {
            try {
                fs.mkdirs(new Path(ROOT, Integer.toString(i)));
            } catch (java.io.IOException e) {
                System.out.println("retry " + i + " " + e);
                Thread.sleep(100);
                continue;
            }
            System.out.println("acked " + i++);
        }
    }

    private static void read(FileSystem fs) throws Exception {
        for (FileStatus s : fs.listStatus(ROOT)) {
            System.out.println("got " + s.getPath().getName());
        }
    }
}
