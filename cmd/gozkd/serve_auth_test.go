package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gozkd/gozkd/client"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/sasl"
)

// Users of a JAAS file authenticate themselves, others are refused, and SIGHUP reads the file
// again: a user who was removed is refused from then on.
func TestServe_SASL(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no SIGHUP there")
	}
	dir := t.TempDir()
	file, jaas := filepath.Join(dir, "zoo.cfg"), filepath.Join(dir, "jaas.conf")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	users := func(options string) {
		write(jaas, "Server { org.apache.zookeeper.server.auth.DigestLoginModule required "+options+"; };\n")
	}
	write(file, strings.Join([]string{
		"dataDir=" + filepath.ToSlash(dir), "clientPort=0", "clientPortAddress=127.0.0.1", "sessionRequireClientSASLAuth=true", "superUser=bob",
		"authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider", "",
	}, "\n"))
	users(`user_bob="planted1" user_eve="planted2"`)
	p := launch(t, "serve", file, "-Djava.security.auth.login.config="+jaas)
	// read returns the error of a read by a client with these credentials.
	read := func(user, password string) error {
		c, err := client.Connect(watchdog.Context(t, 20*time.Second), client.Config{Servers: []string{p.ports.Client}, SASL: sasl.NewDigestClient(user, password)})
		if err != nil {
			return err
		}
		defer func() { _ = c.Close() }()
		_, _, err = c.Get(watchdog.Context(t, 20*time.Second), "/zookeeper/quota", false)
		return err
	}
	if err := read("bob", "planted1"); err != nil {
		t.Error(err)
	}
	if err := read("bob", "planted2"); !errors.Is(err, client.ErrSASL) {
		t.Errorf("wrong password: %v", err)
	}
	users(`user_bob="planted3"`)
	p.Signal(syscall.SIGHUP)
	late, poll := watchdog.After(t, 20*time.Second), time.NewTicker(20*time.Millisecond)
	defer poll.Stop()
	for read("bob", "planted3") != nil {
		select {
		case <-poll.C:
		case <-late:
			t.Fatalf("the file is not read again: %s", &p.Stderr)
		}
	}
	for user, password := range map[string]string{"bob": "planted1", "eve": "planted2"} {
		if err := read(user, password); !errors.Is(err, client.ErrSASL) {
			t.Errorf("%s after the reload: %v", user, err)
		}
	}
	if status := p.Stop(os.Interrupt); status != 0 || strings.Contains(p.Stderr.String(), "planted") {
		t.Errorf("exit status %d: %s", status, &p.Stderr)
	}
}

// check-config finds everything that would stop the start, and prints the warnings of the start.
func TestCheckConfig_OpensFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		return filepath.ToSlash(testca.WriteFile(t, filepath.Join(dir, name), []byte(text)))
	}
	files := testca.New(t, "root").Issue(t, testca.Spec{Hosts: []string{"127.0.0.1"}}).Files(t)
	members := "server.1=127.0.0.1:1:2\nserver.2=127.0.0.1:3:4\nserver.3=127.0.0.1:5:6\nmyid=1\nsslQuorum=true\nssl.quorum.trustStore.location=" + filepath.ToSlash(files.CA) + "\n"
	jaas := "java.security.auth.login.config=" + file("jaas.conf", `Server { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="`+file("keytab", kerberosKeytab)+`" principal="zookeeper/h@EX.TEST"; };`) + "\n"
	for _, c := range []struct {
		settings, want string
		status         int
	}{
		{members + "ssl.quorum.keyStore.location=" + filepath.ToSlash(files.Key), "", 0},
		{members + "ssl.quorum.keyStore.location=" + filepath.ToSlash(dir) + "/none.pem", "zoo.cfg:8: ssl.quorum.keyStore.location: ", 1},
		{members + "ssl.quorum.keyStore.location=" + filepath.ToSlash(files.Key) + "\nssl.quorum.ciphersuites=TLS_AES_128_GCM_SHA256,TLS_NONE", "not supported, so not used: TLS_NONE", 0},
		{jaas, "", 0},
		{jaas + "security.auth_to_local=RULE:[1:$2]", "zoo.cfg:3: security.auth_to_local: ", 1},
	} {
		var out, errs strings.Builder
		status := run("gozkd", []string{"check-config", file("zoo.cfg", "dataDir=d\n"+c.settings)}, outside(&out, &errs))
		if status != c.status || !strings.Contains(errs.String(), c.want) || c.want == "" && errs.Len() > 0 {
			t.Errorf("%s\nstatus %d\n%s", c.settings, status, &errs)
		}
	}
}

// check-config names each documented key whose file or directory a server cannot use. The keys of
// other ports with TLS have the same code as ssl.*.
func TestCheckConfig_EachFile(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	file := func(name, text string) string {
		return filepath.ToSlash(testca.WriteFile(t, filepath.Join(dir, name), []byte(text)))
	}
	files, short, missing := testca.New(t, "root").Issue(t, testca.Spec{}).Files(t), file("short", "short"), dir+"/none/x"
	store, ca := filepath.ToSlash(files.Key), filepath.ToSlash(files.CA)
	secure := "secureClientPort=2281\nssl.keyStore.location=" + store + "\nssl.trustStore.location=" + ca + "\n"
	kerberos := "java.security.auth.login.config=" + file("jaas.conf", `Server { com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="`+file("keytab", kerberosKeytab)+`" principal="zookeeper/h"; };`) + "\n"
	type use struct {
		with  string   // the settings without which the key has no effect
		wrong []string // values
	}
	content := []string{missing, short, dir} // of which the server reads the content
	uses := map[string]use{
		"dataDir": {"", []string{short, short + "/x"}}, "dataLogDir": {"", []string{short, short + "/x"}},
		"dynamicConfigFile": {"", content}, "gozkd.admin.tokenFile": {"", content}, "gozkd.peer.secretFile": {"", content},
		"java.security.auth.login.config": {"", content}, "gozkd.sasl.userFile": {"", content}, "java.security.krb5.conf": {kerberos, []string{missing, dir}},
		"gozkd.audit.file":      {"audit.enable=true\n", []string{dir, short + "/x"}},
		"gozkd.archive.url":     {"", []string{"file://" + missing, "file://" + short}},
		"ssl.keyStore.location": {secure, content}, "ssl.trustStore.location": {secure, content},
		"gozkd.tls.cert":            {strings.Replace(secure, "ssl.keyStore.location="+store, "", 1), content},
		"gozkd.tls.ca":              {strings.Replace(secure, "ssl.trustStore.location="+ca, "", 1), content},
		"gozkd.tls.key":             {strings.Replace(secure, store, ca, 1), content},
		"ssl.keyStore.passwordPath": {secure, []string{missing, dir}}, "ssl.trustStore.passwordPath": {secure, []string{missing, dir}},
		"gozkd.ssl.crlLocation": {secure + "ssl.crl=true\n", content},
	}
	for key, u := range uses {
		for _, value := range u.wrong {
			var out, errs strings.Builder
			run("gozkd", []string{"check-config", file("zoo.cfg", "dataDir="+dir+"\n"+u.with+key+"="+value+"\n")}, outside(&out, &errs))
			named := key
			switch key {
			case "gozkd.tls.cert":
				named = "ssl.keyStore.location" // another name
			case "gozkd.tls.ca":
				named = "ssl.trustStore.location" // another name
			case "dynamicConfigFile":
				named = "" // the message names the file, which has lines of its own
			}
			if !strings.Contains(errs.String(), named) || !strings.Contains(errs.String(), strings.TrimPrefix(value, "file://")) {
				t.Errorf("%s=%s: %s", key, value, &errs)
			}
		}
	}
	page, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\* (`+"`[^:]*"+`): (?:PEM |JAAS )?(?:file|directory|place)\b`).FindAllStringSubmatch(string(page), -1)
	if len(rows) < 10 {
		t.Fatalf("%d rows of files", len(rows))
	}
	for _, row := range rows {
		for _, name := range regexp.MustCompile("`([a-zA-Z0-9.]+)`").FindAllStringSubmatch(row[1], -1) {
			if _, known := uses[name[1]]; !known && !strings.Contains(name[1], ".quorum.") && name[1] != "audit.log" {
				t.Errorf("%s is not in this test", name[1])
			}
		}
	}
}
