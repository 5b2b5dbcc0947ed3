import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.apache.solr.client.solrj.SolrQuery;
import org.apache.solr.client.solrj.SolrServerException;
import org.apache.solr.client.solrj.impl.CloudHttp2SolrClient;
import org.apache.solr.client.solrj.impl.CloudSolrClient;
import org.apache.solr.client.solrj.request.CollectionAdminRequest;
import org.apache.solr.common.SolrDocument;
import org.apache.solr.common.SolrException;
import org.apache.solr.common.SolrInputDocument;
import org.apache.solr.common.cloud.ClusterState;
import org.apache.solr.common.cloud.Replica;
import org.apache.solr.common.cloud.SolrZkClient;
import org.apache.solr.embedded.JettySolrRunner;

/** SolrProgram is a node and the client of solr.go: SolrProgram COMMAND SERVERS ARG... It reports and judges nothing. */
public final class SolrProgram {
    private static final String COLLECTION = "ids";

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "node" -> node(args[1], Path.of(args[2]), Integer.parseInt(args[3]));
            case "setup" -> setup(args[1], Path.of(args[2]));
            case "view" -> view(args[1]);
            case "card" -> card(args[1]);
            case "write" -> write(args[1]);
            case "read" -> read(args[1]);
            default -> throw new IllegalArgumentException(args[0]);
        }
        System.exit(0);
    }

    private static void node(String servers, Path home, int port) throws Exception {
        Files.createDirectories(home);
        Files.writeString(home.resolve("solr.xml"), """
            <solr>
              <solrcloud>
                <str name="host">127.0.0.1</str>
                <int name="hostPort">%d</int>
                <str name="hostContext">solr</str>
                <str name="zkHost">%s</str>
                <int name="zkClientTimeout">6000</int>
              </solrcloud>
            </solr>
            """.formatted(port, servers));
        System.setProperty("zkHost", servers);
        new JettySolrRunner(home.toString(), "/solr", port).start();
        Thread.sleep(Long.MAX_VALUE);
    }

    private static CloudSolrClient client(String servers) {
        return new CloudHttp2SolrClient.Builder(List.of(servers.split(",")), Optional.empty()).build();
    }

    /** setup makes the collection, of one shard with two replicas. */
    private static void setup(String servers, Path conf) throws Exception {
        Files.createDirectories(conf);
        Files.writeString(conf.resolve("solrconfig.xml"), """
            <config>
              <luceneMatchVersion>9.12</luceneMatchVersion>
              <schemaFactory class="ClassicIndexSchemaFactory"/>
              <updateHandler class="solr.DirectUpdateHandler2"><updateLog/></updateHandler>
              <requestHandler name="/select" class="solr.SearchHandler"/>
            </config>
            """);
        Files.writeString(conf.resolve("schema.xml"), """
            <schema name="ids" version="1.6">
              <fieldType name="string" class="solr.StrField"/>
              <fieldType name="long" class="solr.LongPointField" docValues="true"/>
              <field name="id" type="string" indexed="true" stored="true" required="true"/>
              <field name="_version_" type="long" indexed="false" stored="false"/>
              <uniqueKey>id</uniqueKey>
            </schema>
            """);
        try (SolrZkClient zk = new SolrZkClient.Builder().withUrl(servers).build(); CloudSolrClient client = client(servers)) {
            zk.uploadToZK(conf, "/configs/conf", null);
            CollectionAdminRequest.createCollection(COLLECTION, "conf", 1, 2).process(client);
        }
        System.out.println("created " + COLLECTION);
    }

    /** view prints the nodes that live, and of each replica its node, its state and whether it leads. */
    private static void view(String servers) throws Exception {
        try (CloudSolrClient client = client(servers)) {
            client.connect();
            ClusterState state = client.getClusterState();
            state.getLiveNodes().forEach(n -> System.out.println("live " + n));
            if (state.hasCollection(COLLECTION)) {
                for (Replica r : state.getCollection(COLLECTION).getReplicas()) {
                    boolean live = state.getLiveNodes().contains(r.getNodeName());
                    System.out.println((live ? r.getState() : "dead") + " " + r.getNodeName());
                    if (live && r.isLeader()) {
                        System.out.println("leader " + r.getNodeName());
                    }
                }
            }
        }
    }

    /** card prints facts in the words of the explorer's card. */
    private static void card(String servers) throws Exception {
        try (CloudSolrClient client = client(servers)) {
            client.connect();
            System.out.println("card " + client.getClusterState().getLiveNodes().size() + " live nodes");
            System.out.println("card " + CollectionAdminRequest.listCollections(client).size() + " collection");
            System.out.println("card overseer is " + CollectionAdminRequest.getOverseerStatus().process(client).getResponse().get("leader"));
        }
    }

    /** write adds numbered documents until stdin has something to read, and prints each that is acknowledged. */
    private static void write(String servers) throws Exception {
        try (CloudSolrClient client = client(servers)) {
            for (int i = 0; System.in.available() == 0;) {
                SolrInputDocument document = new SolrInputDocument();
                document.addField("id", Integer.toString(i));
                try {
                    client.add(COLLECTION, document);
                } catch (SolrServerException | SolrException | java.io.IOException e) {
                    System.out.println("retry " + i + " " + e);
                    Thread.sleep(100);
                    continue;
                }
                System.out.println("acked " + i++);
            }
        }
    }

    private static void read(String servers) throws Exception {
        try (CloudSolrClient client = client(servers)) {
            client.commit(COLLECTION);
            for (SolrDocument d : client.query(COLLECTION, new SolrQuery("*:*").setRows(1_000_000)).getResults()) {
                System.out.println("got " + d.getFieldValue("id"));
            }
        }
    }
}
