package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/server"
)

func installKafka(ctx context.Context, root string) (string, func(context.Context, *world) string) {
	k := &kafka{javaProgram: installMaven(ctx, root, "kafka", "kafka_2.13")}
	return k.version, k.check
}

// kafka is a cluster of three brokers in ZooKeeper mode.
type kafka struct {
	javaProgram
	*world
	brokers   []*server.Process
	bootstrap string
}

// check kills the ensemble's leader and then the broker that is the controller while records are
// produced.
func (k *kafka) check(ctx context.Context, w *world) string {
	const brokers, some = 3, 300
	k.world = w
	ports := must.Get(server.FreePorts(brokers))
	k.bootstrap = fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", ports[0], ports[1], ports[2])
	k.brokers = make([]*server.Process, brokers)
	for id, port := range ports {
		k.startBroker(id, port)
	}
	k.awaitHealth(ctx)
	k.client(ctx, "create", "records")
	producer := w.startWorker("producer", k.command(w, "KafkaClient", "produce", k.bootstrap, "records"))
	producer.more(ctx, w, some)
	w.killLeader(ctx)
	producer.more(ctx, w, some)
	k.client(ctx, "create", "without-a-member")
	w.returnLeader(ctx)
	producer.more(ctx, w, some)

	old := k.controller()
	must.Do(k.brokers[old].Kill())
	w.await(ctx, "another controller", func() error {
		if c := k.controller(); c == old {
			return fmt.Errorf("broker %d, which was killed, is still the controller", c)
		}
		return nil
	})
	producer.more(ctx, w, some)
	k.startBroker(old, ports[old])
	k.awaitHealth(ctx)
	producer.more(ctx, w, some)
	output := producer.end(ctx)
	if failed := values(output, "failed"); len(failed) > 0 {
		must.Failf("%d records were refused; the first: %s", len(failed), failed[0])
	}
	acked, found := values(output, "acked"), values(k.client(ctx, "consume", "records"), "got")
	must.Do(kept(acked, found))
	k.awaitHealth(ctx)
	w.awaitCard(ctx, "Kafka", values(k.client(ctx, "health", ""), "card")...)
	return fmt.Sprintf("%d acknowledged records, each consumed once", len(acked))
}

func (k *kafka) startBroker(id, port int) {
	name := fmt.Sprintf("broker-%d", id)
	config := k.configure("kafka/broker.properties", name+".properties", map[string]any{
		"ID": id, "Port": port, "ZooKeeper": k.connect(","), "Data": filepath.Join(k.dir, name),
	})
	k.brokers[id] = k.start(name, k.command(k.world, "kafka.Kafka", config))
}

// client runs a command of KafkaClient and returns its output.
func (k *kafka) client(ctx context.Context, command, topic string) string {
	return k.ask(ctx, command, k.command(k.world, "KafkaClient", command, k.bootstrap, topic))
}

// awaitHealth waits until all brokers are there and every partition has all its replicas in sync.
func (k *kafka) awaitHealth(ctx context.Context) {
	k.await(ctx, "all brokers and replicas", func() error {
		output := k.client(ctx, "health", "")
		for _, line := range []string{fmt.Sprintf("brokers %d\n", len(k.brokers)), "lacking 0\n"} {
			if !strings.Contains(output, line) {
				return fmt.Errorf("no %q in: %s", line, tail(output))
			}
		}
		return nil
	})
}

// controller returns the broker that /kafka/controller names.
func (k *kafka) controller() int {
	conn, _, err := zk.Connect(k.ensemble.Addrs(), 10*time.Second, zk.WithLogInfo(false))
	must.Do(err)
	defer conn.Close()
	data, _, err := conn.Get("/kafka/controller")
	must.Do(err)
	var controller struct{ BrokerID int }
	must.Do(json.Unmarshal(data, &controller))
	return controller.BrokerID
}
