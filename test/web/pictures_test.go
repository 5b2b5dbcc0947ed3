package web

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/recipes"
	"github.com/gozkd/gozkd/recipes/election"
	"github.com/gozkd/gozkd/recipes/lock"
	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

// maxPicture bounds the size of a picture in the docs.
const maxPicture = 60 << 10

// shop gives a site the znodes of programs that people run.
func shop(t *testing.T) *site {
	t.Helper()
	x := open(t, server.Config{}, web.Options{Anonymous: web.Admin})
	znodes := map[string]string{
		"/kafka/brokers/topics/orders":                      `{"version":3,"topic_id":"q1Rk0bXvT8y","partitions":{"0":[1,2,3],"1":[2,3,1],"2":[3,1,2],"3":[1,3,2]},"adding_replicas":{},"removing_replicas":{}}`,
		"/kafka/brokers/topics/payments":                    `{"version":3,"topic_id":"Zx81kQpT2Lm","partitions":{"0":[2,3,1]},"adding_replicas":{},"removing_replicas":{}}`,
		"/kafka/config/topics/orders":                       `{"version":1,"config":{"retention.ms":"604800000"}}`,
		"/kafka/controller_epoch":                           "7",
		"/kafka/controller":                                 `{"version":2,"brokerid":2}`,
		"/kafka/brokers/topics/orders/partitions/0/state":   `{"leader":1}`,
		"/kafka/brokers/topics/payments/partitions/0/state": `{"leader":-1}`,
		"/solr/live_nodes/solr1:8983_solr":                  "", "/solr/live_nodes/solr2:8983_solr": "", "/solr/collections/products": "",
		"/solr/overseer_elect/leader": `{"id":"72057-solr1:8983_solr-n_0000000003"}`,
		"/service/pg/members/pg-1":    "{}", "/service/pg/members/pg-2": `{"xlog_location":83886080}`, "/service/pg/status": `{"optime":83886080}`, "/service/pg/initialize": "7", "/service/pg/leader": "pg-1",
		"/shop/config/database":         `{"host": "db1.example", "port": 5432, "pool": {"min": 4, "max": 64}, "tls": true, "replicas": ["db2.example", "db3.example"]}`,
		"/shop/config/features":         "checkout:\n  express: true\n  limit: 250\nsearch:\n  engine: v2\n",
		"/shop/config/log4j.properties": "rootLogger=INFO, stdout\nappender.stdout.type=Console\n",
		"/shop-old/config/database":     `{"host": "db0.example", "port": 5432, "pool": {"min": 4, "max": 32}, "tls": false}`,
		"/shop-old/config/features":     "checkout:\n  express: false\n  limit: 250\nsearch:\n  engine: v2\n",
		"/shop/locks":                   "", "/shop/leader": "", "/shop/services/billing": "", "/kafka/brokers/ids": "",
	}
	for i := range 2500 {
		znodes[fmt.Sprintf("/shop/jobs/job-%010d", i)] = fmt.Sprintf(`{"order":%d}`, 7000+i)
	}
	x.fill(znodes)
	zk := x.connect(client.Auth{Scheme: "digest", Credential: []byte("billing:x")})
	broker := x.connect()
	for i := range 3 {
		x.create(broker, fmt.Sprintf("/kafka/brokers/ids/%d", i+1), fmt.Sprintf(`{"endpoints":["PLAINTEXT://kafka%d:9092"],"host":"kafka%[1]d","port":9092,"version":5,"timestamp":"%d"}`, i+1, time.Now().UnixMilli()),
			client.CreateOptions{Ephemeral: true})
	}
	x.create(zk, "/shop/services/billing/i-1", `{"name":"billing","id":"i-1","address":"10.0.0.7","port":8443,"serviceType":"DYNAMIC","registrationTimeUTC":1790000000000}`, client.CreateOptions{Ephemeral: true})
	x.create(zk, "/shop/cache", "", client.CreateOptions{TTL: time.Hour})
	x.create(zk, "/shop/rooms", "", client.CreateOptions{Container: true})
	for _, p := range []string{"/shop/config", "/kafka/brokers/topics", "/shop/leader"} {
		if err := zk.AddWatch(t.Context(), p, proto.AddWatchPersistentRecursive); err != nil {
			t.Fatal(err)
		}
	}
	x.fill(map[string]string{"/zookeeper/quota/shop/zookeeper_limits": "count=3000,bytes=-1", "/zookeeper/quota/shop/zookeeper_stats": "count=2520,bytes=0"})

	ctx := t.Context()
	var clients []*recipes.Client
	for range 4 {
		c, err := recipes.Connect(ctx, []string{x.server.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // its locks are in a cycle
		clients = append(clients, c)
	}
	request := func(c int, path, text string) {
		go lock.NewMutex(clients[c], path, []byte(text)).Lock(ctx) //nolint:errcheck // waits until the test ends
		poll(t, text+" requests "+path, func() bool {
			names, _, err := zk.Children(ctx, path, false)
			return err == nil && slices.ContainsFunc(names, func(name string) bool { return x.text(zk, path+"/"+name) == text })
		})
	}
	request(0, "/shop/locks/stock", "web-1")
	request(1, "/shop/locks/stock", "web-2")
	request(2, "/shop/locks/stock", "batch-1")
	request(1, "/shop/locks/ledger", "web-2")
	request(0, "/shop/locks/ledger", "web-1")
	request(3, "/shop/locks/mail", "mailer")
	for i, name := range []string{"node-1", "node-2"} {
		l := election.NewLatch(clients[2+i], "/shop/leader", name)
		if err := l.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if _, err := l.Await(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	return x
}

// fewColors returns a picture with its 256 most frequent colors: a third of the bytes.
func fewColors(raw []byte) ([]byte, error) {
	img, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	bounds := img.Bounds()
	counts := map[color.Color]int{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[img.At(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	palette := color.Palette(colors[:min(len(colors), 256)])
	nearest := map[color.Color]uint8{}
	for _, c := range colors {
		nearest[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(bounds, palette)
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			out.SetColorIndex(x, y, nearest[img.At(x, y)])
		}
	}
	var b bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&b, out)
	return b.Bytes(), err
}

// TestPictures takes the pictures of docs/guide/rest.md, which make web-pictures keeps.
func TestPictures(t *testing.T) {
	x := shop(t)
	zk := x.connect()
	b := x.visit(t, "#/z/")
	for _, p := range []struct {
		name  string
		width int
		dark  bool
		hash  string
		text  string
		act   func()
	}{
		{"overview", 1280, false, "#/overview", "What lives here", b.charted},
		{"overview-small", 360, true, "#/overview", "What lives here", func() { b.see(".app", "Kafka") }},
		{"znode", 1280, false, "#/z/shop/config/database", "db1.example", func() { b.see(".badges", "quota shop") }},
		{"locks", 1280, true, "#/locks", "wait for each other", nil},
		{"conflict", 768, false, "#/z/shop/config/features", "express", func() {
			b.press("e")
			b.fill("textarea", "Data", "checkout:\n  express: true\n  limit: 400\nsearch:\n  engine: v2\n")
			if _, err := zk.Set(t.Context(), "/shop/config/features", []byte("checkout:\n  express: true\n  limit: 250\nsearch:\n  engine: v3\n"), -1); err != nil {
				t.Fatal(err)
			}
			b.click("button", "Save")
			b.see("dialog h2", "Somebody else changed")
		}},
		{"children", 360, true, "#/z/shop/jobs", "job-0000000003", nil},
		{"locks-small", 360, false, "#/locks", "wait for each other", nil},
		{"compare", 1280, false, "#/compare?left=/shop/config&right=/shop-old/config", "differences", nil},
		{"sessions-small", 360, false, "#/sessions", "on this server", nil},
		{"tail", 768, true, "#/z/shop?follow=1", "Waiting", func() {
			b.follows("/shop?watch=recursive")
			for i := range 5 {
				x.create(zk, fmt.Sprintf("/shop/jobs/new-%d", i), "", client.CreateOptions{})
			}
			b.see(".tail", "new-4")
		}},
	} {
		t.Run(p.name, func(t *testing.T) { // so that a failure names its picture
			defer func(outer *testing.T) { b.t = outer }(b.t)
			b.t = t
			b.size(p.width, map[int]int{360: 720, 768: 720, 1280: 800}[p.width])
			b.dark(p.dark)
			b.show(p.hash, p.text)
			b.until("!document.querySelector('.tree .bone') || innerWidth < 720")
			if p.act != nil {
				p.act()
			}
			b.picture(p.name)
			if b.count("dialog", "") > 0 {
				b.click("button", "Keep theirs")
				b.closed()
			}
		})
	}
}

// charted gives the first screen the hour of a busy server. Its own samples come every 10 s.
func (b *tab) charted() {
	b.t.Helper()
	b.eval(`{ const real = fetch, hour = Array.from({length: 360}, (_, i) => ({time: 10000 * i, znodes: 2400 + i / 3, bytes: 64000 + 20 * i, sessions: 11 + (i > 200),
		changes: 160 + 60 * Math.sin(i / 45) + 12 * Math.sin(i * i), requests: 500 + 150 * Math.sin(i / 45) + 40 * Math.sin(i * i)}));
		window.fetch = (u, o) => (String(u).includes('/ui/api/past') ? Promise.resolve(Response.json({samples: hour})) : real(u, o)); }`, nil)
	b.press("r")
	b.until("document.querySelector('.numbers polyline').getAttribute('points').split(' ').length >= 7")
}

// picture takes a picture, which must be small enough for the docs, and keeps it in GOZKD_PICTURES.
func (b *tab) picture(name string) {
	b.t.Helper()
	picture, err := b.shot(b.t.Context())
	if err == nil {
		picture, err = fewColors(picture)
	}
	if err != nil {
		b.t.Fatal(err)
	}
	if len(picture) > maxPicture {
		b.t.Errorf("%s has %d bytes, allowed are %d", name, len(picture), maxPicture)
	}
	if dir := os.Getenv("GOZKD_PICTURES"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}
