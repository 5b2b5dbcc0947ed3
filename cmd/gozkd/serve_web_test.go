package main

import (
	"encoding/json"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/config"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
)

// The explorer and REST show what the server's own archive has.
func TestServe_HistoryOfArchive(t *testing.T) {
	place := "file:///" + strings.TrimPrefix(filepath.ToSlash(t.TempDir()), "/")
	p := launch(t, "serve", "--memory", "--client-port", "0", "-o", "admin.serverPort=0", "-o", "gozkd.web=write",
		"-o", "gozkd.archive.url="+place, "-o", "gozkd.archive.intervalMs=100")
	address := strings.TrimSuffix(p.ports.Admin, "/commands")
	type history struct {
		Versions []struct {
			Change, Zxid string
			Data         []byte
		}
		Data []byte
	}
	ask := func(method, path, body string, headers ...string) (status int, h history) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, address+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		_ = json.NewDecoder(resp.Body).Decode(&h) // the caller looks at what there is
		return resp.StatusCode, h
	}
	// await asks for the history of /x until it is as wanted.
	late := watchdog.After(t, 30*time.Second)
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	await := func(wanted func(status int, h history) bool) history {
		t.Helper()
		for {
			status, h := ask("GET", "/ui/api/history?path=/x", "")
			if wanted(status, h) {
				return h
			}
			select {
			case <-again.C:
			case <-late:
				t.Fatalf("not in the archive: status %d, %+v", status, h)
			}
		}
	}
	await(func(status int, _ history) bool { return status == http.StatusOK }) // the first base lacks /x
	if status, _ := ask("PUT", "/znodes/v2/x", "one", "If-None-Match", "*"); status != http.StatusCreated {
		t.Fatal(status)
	}
	if status, _ := ask("PUT", "/znodes/v2/x", "two", "If-Match", "*"); status != http.StatusOK {
		t.Fatal(status)
	}
	if status, _ := ask("DELETE", "/znodes/v2/x", "", "If-Match", "*"); status != http.StatusNoContent {
		t.Fatal(status)
	}
	v := await(func(_ int, h history) bool { return len(h.Versions) == 3 }).Versions
	if v[0].Change != "deleted" || v[1].Change != "changed" || string(v[1].Data) != "two" || v[2].Change != "created" {
		t.Errorf("%+v", v)
	}
	if status, h := ask("GET", "/znodes/v2/x?at="+v[1].Zxid, ""); status != http.StatusOK || string(h.Data) != "two" {
		t.Errorf("%d %+v", status, h)
	}
	if status, _ := ask("GET", "/znodes/v2/x?at="+v[0].Zxid, ""); status != http.StatusNotFound {
		t.Error(status)
	}
}

// Members of an ensemble whose clients must use TLS ask each other so, at the same port.
func TestMemberAsker_TLSOnly(t *testing.T) {
	files := testca.New(t, "root").Issue(t, testca.Spec{Hosts: []string{"elsewhere"}}).Files(t)
	port := reserveRange(t, 1)
	stores := []string{"ssl.keyStore.location=" + files.Key, "ssl.trustStore.location=" + files.CA, "secureClientPort=" + strconv.Itoa(port), "4lw.commands.whitelist=srvr"}
	args := []string{"serve", "--memory"}
	for _, o := range stores {
		args = append(args, "-o", o)
	}
	launch(t, args...)
	_, c, err := config.Load(args, func(string) string { return "" }, nil)
	if err != nil {
		t.Fatal(err)
	}
	var certificates tlsFiles
	_, use, err := certificates.prepare(true, c.ClientTLS, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	use()
	defer certificates.close()
	ask, at := memberAsker(c, &certificates)
	answer, err := ask(t.Context(), net.JoinHostPort("127.0.0.1", strconv.Itoa(at)), "srvr")
	if err != nil || !strings.Contains(answer, "Mode: standalone") {
		t.Errorf("port %d: %q %v", at, answer, err)
	}
}
