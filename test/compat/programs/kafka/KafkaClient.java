import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** KafkaClient is the client of kafka.go: KafkaClient COMMAND BOOTSTRAP TOPIC. It reports and judges nothing. */
public final class KafkaClient {
    private static final int PARTITIONS = 6;
    private static final short REPLICAS = 3;

    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[1]);
        switch (args[0]) {
            case "create" -> create(p, args[2]);
            case "health" -> health(p);
            case "produce" -> produce(p, args[2]);
            case "consume" -> consume(p, args[2]);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void create(Properties p, String topic) throws Exception {
        try (Admin admin = Admin.create(p)) {
            admin.createTopics(List.of(new NewTopic(topic, PARTITIONS, REPLICAS))).all().get();
        }
        System.out.println("created " + topic);
    }

    /**
     * health prints the number of brokers and, of all partitions, how many lack a leader or a replica;
     * and these facts in the words of the explorer's card.
     */
    private static void health(Properties p) throws Exception {
        try (Admin admin = Admin.create(p)) {
            System.out.println("brokers " + admin.describeCluster().nodes().get().size());
            Set<String> topics = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
            List<TopicPartitionInfo> partitions = admin.describeTopics(topics).allTopicNames().get().values().stream()
                .flatMap(t -> t.partitions().stream()).toList();
            long lacking = partitions.stream().filter(t -> t.leader() == null || t.isr().size() < REPLICAS).count();
            System.out.println("lacking " + lacking);
            System.out.println("card " + admin.describeCluster().nodes().get().size() + " brokers");
            System.out.println("card " + topics.size() + " topics");
            System.out.println("card controller is broker " + admin.describeCluster().controller().get().id());
            System.out.println("card all " + partitions.stream().filter(t -> t.leader() != null).count() + " partitions have a leader");
        }
    }

    /** produce sends numbered records until stdin has something to read, and prints each that is acknowledged. */
    private static void produce(Properties p, String topic) throws Exception {
        p.put("acks", "all");
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(p, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; System.in.available() == 0; i++) {
                String id = Integer.toString(i);
                producer.send(new ProducerRecord<>(topic, id, id),
                    (m, e) -> System.out.println(e == null ? "acked " + id : "failed " + id + " " + e));
                Thread.sleep(5);
            }
        }
        System.out.println("produced");
    }

    /** consume prints all records of the topic, as a group of one. */
    private static void consume(Properties p, String topic) {
        p.put("group.id", "gozkd");
        p.put("auto.offset.reset", "earliest");
        try (KafkaConsumer<String, String> c = new KafkaConsumer<>(p, new StringDeserializer(), new StringDeserializer())) {
            c.subscribe(List.of(topic));
            Map<TopicPartition, Long> ends = Map.of();
            while (ends.size() < PARTITIONS || ends.entrySet().stream().anyMatch(e -> c.position(e.getKey()) < e.getValue())) {
                for (ConsumerRecord<String, String> r : c.poll(Duration.ofMillis(500))) {
                    System.out.println("got " + r.value());
                }
                if (ends.isEmpty()) {
                    ends = c.endOffsets(c.assignment());
                }
            }
            c.commitSync();
        }
        System.out.println("consumed");
    }
}
