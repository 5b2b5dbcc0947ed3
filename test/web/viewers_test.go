package web

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/gozkd/gozkd/server"
	"github.com/gozkd/gozkd/web"
)

func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zlibbed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func zstandard(t *testing.T, text string) string {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return string(w.EncodeAll([]byte(text), nil))
}

// Each kind of data gets the viewer that fits; data inside of data gets one of its own.
func TestViewers(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	const object = `{"name": "db", "nested": {"port": 5432}, "list": [1, 2, 9007199254740993]}`
	snappy := string([]byte{12, 0x0c, 97, 98, 99, 100, 0x11, 4}) // abcdabcdabcd
	cases := []struct {
		path, data, viewer string
		shows              []string
	}{
		{"/v/text", "hello\nworld", "Text", []string{"hello", "world"}},
		{"/v/json", object, "JSON", []string{`"nested"`, "5432", "9007199254740993"}},
		{"/v/yaml", "server:\n  host: x\n  ports:\n    - 1\n", "YAML", []string{"host", "ports"}},
		{"/v/properties", "a.b=c\n# x\nd = e\n", "Properties", []string{"a.b", "e"}},
		{"/v/xml", "<a><b>c</b></a>", "XML", []string{"<b>"}},
		{"/v/hex", "\x00\xff\xfe\x01", "Hex", []string{"00 ff fe 01"}},
		{"/v/base64", base64.StdEncoding.EncodeToString([]byte(object)), "Base64", []string{"Inside", `"nested"`}},
		{"/v/gzip", zipped(t, object), "gzip", []string{"Inside", `"nested"`, "JSON"}},
		{"/v/twice", zipped(t, zipped(t, object)), "gzip", []string{"Inside", `"nested"`}},
		{"/v/zlib", zlibbed(t, object), "zlib", []string{"Inside", `"nested"`}},
		{"/v/zstd", zstandard(t, object), "zstd", []string{"Inside", `"nested"`}},
		{"/v/snappy", snappy, "Snappy", []string{"Inside", "abcdabcdabcd"}},
		{"/v/curator", `{"name":"billing","id":"i-1","address":"10.0.0.7","port":8443,"serviceType":"DYNAMIC","registrationTimeUTC":1700000000000}`,
			"Curator service", []string{"billing", "10.0.0.7:8443", "DYNAMIC"}},
		{"/kafka/brokers/ids/1", `{"listener_security_protocol_map":{},"endpoints":["PLAINTEXT://k:9092"],"host":"k","port":9092,"version":5,"timestamp":"1"}`,
			"Kafka", []string{"Broker 1", "k:9092"}},
		{"/kafka/brokers/topics/orders", `{"version":3,"topic_id":"abc","partitions":{"0":[1,2],"1":[2,1]},"adding_replicas":{},"removing_replicas":{}}`,
			"Kafka", []string{"orders", "Preferred leader"}},
		{"/clickhouse/t/replicas/r1/host", "host: h1\nport: 9009\ntcp_port: 9000\ndatabase: d\n", "ClickHouse", []string{"tcp port", "9000"}},
		{"/v/protobuf", "\x08\x96\x01\x12\x02hi\x1a\x01\xff", "Protobuf", []string{"150", "hi"}},
	}
	znodes := map[string]string{}
	for _, c := range cases {
		znodes[c.path] = c.data
	}
	x.fill(znodes)
	b := x.visit(t, "#/z/")
	for _, c := range cases {
		b.gotoHash("#/z" + c.path)
		b.see(".crumbs", c.path[strings.LastIndex(c.path, "/")+1:])
		for _, text := range c.shows {
			b.see(".znode .data", text)
		}
		if chosen := ask[string](b, "person.all('select', 'Viewer')[0].selectedOptions[0].textContent"); !strings.EqualFold(chosen, c.viewer+" (auto)") {
			t.Errorf("%s: viewer %q, want %s", c.path, chosen, c.viewer)
		}
	}
	// A choice is kept for the neighbours, also in the next tab of this browser.
	b.gotoHash("#/z/v/text")
	b.see(".data", "hello")
	b.choose("Viewer", "hex")
	b.see(".data", "68 65 6c 6c 6f")
	b.open("#/z/v/json")
	b.see(".data", "7b 22 6e 61 6d 65")
	b.gotoHash("#/z/kafka/brokers/ids/1")
	b.see(".data", "k:9092")
	// Folding of JSON.
	b.gotoHash("#/z/v/json")
	b.choose("Viewer", "")
	b.see(".data", "5432")
	b.click(".json-toggle", "")
	b.gone(".data", "5432")
}

// A znode above 1 MiB is downloaded, not shown.
func TestViewers_Large(t *testing.T) {
	x := open(t, server.Config{MaxBuffer: 4 << 20}, web.Options{Anonymous: web.Read, MaxBody: 4 << 20})
	x.fill(map[string]string{"/large": strings.Repeat("x", 2<<20), "/just": strings.Repeat("y", 1<<20)})
	b := x.visit(t, "#/z/large")
	b.see(".znode", "More than 1 MiB")
	b.eval(`window.saved = null; URL.createObjectURL = (blob) => { window.saved = blob.size; return 'blob:none'; }; HTMLAnchorElement.prototype.click = () => {}`, nil)
	b.click("button", "=Download")
	b.until(fmt.Sprintf("window.saved === %d", 2<<20))
	b.gotoHash("#/z/just")
	b.see(".data", "yyyyyyyy")
	b.see(".data", "1.0 MiB")
}

// What is folded is unfolded by one button, and before something is found in it.
func TestViewers_Find(t *testing.T) {
	x := open(t, server.Config{}, web.Options{Anonymous: web.Read})
	large := strings.Repeat(`{"name": "host", "ports": [1, 2]}, `, 400)
	x.fill(map[string]string{"/large": "[" + large + `{"name": "Needle", "port": 5432}]`, "/yaml": "server:\n" + strings.Repeat("  host: x\n", 50)})
	b := x.visit(t, "#/z/large")
	b.see(".data", "2 members")
	b.gone(".data", "5432")
	b.click(".data button", "Unfold all")
	b.see(".data", "5432")
	b.gone(".data", "2 members")
	b.open("#/z/large")
	b.see(".data", "2 members")
	b.fill("input", "Find in the data", `"needle", "port": 5432`) // across lines and elements, whatever the case
	b.see(".data [role=status]", "0 of 0")                        // lines are no text of their own
	b.fill("input", "Find in the data", `"name": "needle"`)
	b.see(".data [role=status]", "1 of 1")
	b.until("CSS.highlights.get('found-now').size === 1 && person.seen([...CSS.highlights.get('found-now')][0].startContainer.parentElement)")
	b.gotoHash("#/z/yaml")
	b.fill("input", "Find in the data", "HOST: x")
	b.see(".data [role=status]", "1 of 50")
	b.press("Enter", "Enter")
	b.see(".data [role=status]", "3 of 50")
}

// Data inside gzip and zlib are edited as text, and packed again; a conflict is shown as text, too.
func TestEdit_Packed(t *testing.T) {
	x, zk, b := begin(t, web.Write, map[string]string{"/zipped": zipped(t, "host=db1"), "/zlib": zlibbed(t, "host=db1"+strings.Repeat(" ", 50))}, "#/z/zipped")
	for path, unpack := range map[string]func(io.Reader) (io.ReadCloser, error){
		"/zipped": func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }, "/zlib": zlib.NewReader,
	} {
		b.gotoHash("#/z" + path)
		b.see(".data", "host=db1")
		b.press("e")
		b.see("dialog", "packed again")
		b.fill("textarea", "Data", "host=mine")
		if path == "/zipped" {
			if _, err := zk.Set(t.Context(), path, []byte(zipped(t, "host=theirs")), -1); err != nil {
				t.Fatal(err)
			}
			b.click("button", "=Save")
			b.see("dialog .removed", "host=theirs")
			b.see("dialog .added", "host=mine")
			b.click("button", "Edit mine")
			b.until("document.querySelector('dialog textarea')?.value === 'host=mine'")
		}
		b.click("button", "=Save")
		b.closed()
		b.see(".data", "host=mine")
		r, err := unpack(strings.NewReader(x.text(zk, path)))
		if err != nil {
			t.Fatal(err)
		}
		if raw, err := io.ReadAll(r); string(raw) != "host=mine" || err != nil {
			t.Errorf("%s: %q, %v", path, raw, err)
		}
	}
}
