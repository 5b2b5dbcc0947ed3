package clientflags

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/cli"
	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/sasl"
)

// resolve is what a command does with its arguments and its environment.
func resolve(args []string, environ map[string]string) (*Security, error) {
	var f Flags
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	f.Register(fs)
	if _, err := cli.ParseFlags(fs, args); err != nil {
		return nil, err
	}
	return f.Resolve(cli.Env{Getenv: func(name string) string { return environ[name] }, Err: io.Discard})
}

// serve answers each connection with hello and closes it, and returns the address.
func serve(t *testing.T, cfg *tls.Config, hello string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() { // ends when the listener is closed; awaited below
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { // ends when the client has closed; awaited below
				defer conn.Close() //nolint:errcheck // the client sees what it gets
				if cfg != nil {
					conn = tls.Server(conn, cfg)
				}
				if _, err := io.ReadFull(conn, make([]byte, len(word))); err == nil {
					_, _ = io.WriteString(conn, hello)
				}
			})
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return l.Addr().String()
}

// word is longer than the beginning of a TLS record, which a server waits for.
const word = "ruok ruok"

// ask sends the word.
func ask(ctx context.Context, s *Security, address string) (answer string, err error) {
	conn, err := s.Dial(ctx, address)
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // it was only read
	if _, err := io.WriteString(conn, word); err != nil {
		return "", err
	}
	b, err := io.ReadAll(conn)
	if err == nil && len(b) == 0 {
		err = io.EOF
	}
	return string(b), err
}

func TestResolve_WrongFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--key", "k"}, {"--insecure-skip-verify", "--cacert", "f"}, {"--insecure-skip-verify", "--tls-server-name", "f"},
		{"--cacert", ""}, {"--cert", ""}, {"--tls", "--cacert="}, {"--tls", "--cert", "c", "--key", ""}, {"--tls-server-name", ""},
		{"--sasl-user", "", "--sasl-password-file", ""}, {"--jaas", ""}, {"-client-configuration", ""}, // as of a variable that is not set
		{"--sasl-user", "bob"}, {"--sasl-password-file", "f"}, {"--sasl-user", "bob", "--sasl-password-file", "f", "--jaas", "f"},
	} {
		if _, err := resolve(args, nil); !errors.As(err, new(cli.UsageError)) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// TestResolve_Errors checks that an error names the flag or the property, and the file.
func TestResolve_Errors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string { return testca.WriteFile(t, filepath.Join(dir, name), []byte(text)) }
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--cacert", "nosuch.pem"}, "--cacert: open nosuch.pem"},
		{[]string{"--cert", file("empty.pem", "")}, "--cert"},
		{[]string{"-client-configuration", "nosuch"}, "-client-configuration: open nosuch"},
		{[]string{"-client-configuration", file("a", "zookeeper.client.secure=true\nzookeeper.ssl.trustStore.location=nosuch.pem\n")}, "zookeeper.ssl.trustStore.location"},
		{[]string{"-client-configuration", file("b", "zookeeper.client.secure=true\nzookeeper.ssl.context.supplier.class=x.Y\n")}, "zookeeper.ssl.context.supplier.class=x.Y is not supported"},
		{[]string{"--sasl-user", "bob", "--sasl-password-file", "nosuch"}, "--sasl-password-file: open nosuch"},
		{[]string{"--sasl-user", "bob", "--sasl-password-file", file("p1", "\n")}, "a password is one line"},
		{[]string{"--sasl-user", "bob", "--sasl-password-file", file("p2", "hush\nhush\n")}, "a password is one line"},
		{[]string{"--jaas", "nosuch"}, "nosuch"},
		{[]string{"--jaas", file("j1", "Server {};")}, "no section Client"},
		{[]string{"--jaas", file("j2", "Client { a.B required; };")}, "no module is supported"},
		{[]string{"--jaas", file("j3", "Client { org.apache.zookeeper.server.auth.DigestLoginModule required username=bob; };")}, "needs username and password"},
		{[]string{"-client-configuration", file("d", "zookeeper.sasl.client=true\njava.security.auth.login.config="+file("j4", "Other {};"))}, "no section Client"},
		{[]string{"-client-configuration", file("c", "a=\\u00zz\n")}, "c: "},
	} {
		if _, err := resolve(c.args, nil); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", c.args, err)
		}
	}
}

// TestResolve_Precedence checks that flags win over the file, and the file over the environment.
func TestResolve_Precedence(t *testing.T) {
	right, wrong := testca.New(t, "right"), testca.New(t, "wrong")
	address := serve(t, right.Issue(t, testca.Spec{Hosts: []string{"127.0.0.1"}}).Server(), "imok")
	ours, theirs := right.Issue(t, testca.Spec{}).Files(t), wrong.Issue(t, testca.Spec{}).Files(t)
	properties := func(f testca.Files) string {
		return testca.WriteFile(t, filepath.Join(t.TempDir(), "properties"),
			[]byte("zookeeper.client.secure = TRUE\nzookeeper.ssl.trustStore.location="+f.CA+" \nzookeeper.ssl.keyStore.location="+f.Key+"\n"))
	}
	environ := func(f testca.Files) map[string]string {
		return map[string]string{
			"CLIENT_JVMFLAGS": "-Xmx64m -Dzookeeper.client.secure=true  -Dzookeeper.ssl.trustStore.location=" + f.CA + "\t-Dzookeeper.ssl.keyStore.location=nosuch.pem",
			"JVMFLAGS":        "-Dzookeeper.ssl.keyStore.location=" + f.Key,
		}
	}
	for name, c := range map[string]struct {
		args    []string
		environ map[string]string
	}{
		"flags":                      {[]string{"--cacert", ours.CA, "--cert", ours.Cert, "--key", ours.Bare}, nil},
		"one file":                   {[]string{"--tls", "--cacert", ours.CA, "--cert", ours.Key}, nil},
		"file":                       {[]string{"-client-configuration", properties(ours)}, nil},
		"environment":                {nil, environ(ours)},
		"flags win over the file":    {[]string{"--cacert", ours.CA, "--cert", ours.Key, "-client-configuration", properties(theirs)}, nil},
		"file wins over environment": {[]string{"-client-configuration", properties(ours)}, environ(theirs)},
		"any certificate":            {[]string{"--insecure-skip-verify", "--cert", ours.Key}, environ(theirs)},
	} {
		s, err := resolve(c.args, c.environ)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if answer, err := ask(t.Context(), s, address); answer != "imok" || !s.TLS() {
			t.Errorf("%s: %q, %v", name, answer, err)
		}
	}
}

// TestSASL_WhereTheUserIsNamed checks where the name and the password are found.
func TestSASL_WhereTheUserIsNamed(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string { return testca.WriteFile(t, filepath.Join(dir, name), []byte(text)) }
	const module = "{ org.apache.zookeeper.server.auth.DigestLoginModule required username=\"bob\" password=\"hush\"; };"
	password, jaas := file("password", "hush\n"), file("jaas", "Client "+module+" Mine "+module)
	users := make(sasl.DigestUsers)
	users.Set("bob", "hush")
	for name, c := range map[string]struct {
		args    []string
		environ map[string]string
		none    bool
	}{
		"flags":       {args: []string{"--sasl-user", "bob", "--sasl-password-file", password}},
		"JAAS":        {args: []string{"--jaas", jaas}},
		"environment": {environ: map[string]string{"CLIENT_JVMFLAGS": "-Djava.security.auth.login.config=" + jaas}},
		"URL":         {environ: map[string]string{"JVMFLAGS": "-Djava.security.auth.login.config==file:" + jaas}},
		"section":     {environ: map[string]string{"CLIENT_JVMFLAGS": "-Dzookeeper.sasl.clientconfig=Mine -Djava.security.auth.login.config=" + jaas}},
		"file":        {args: []string{"-client-configuration", file("properties", "java.security.auth.login.config="+jaas)}},
		"disabled":    {environ: map[string]string{"CLIENT_JVMFLAGS": "-Dzookeeper.sasl.client=false -Djava.security.auth.login.config=" + jaas}, none: true},
		"no section":  {environ: map[string]string{"CLIENT_JVMFLAGS": "-Dzookeeper.sasl.clientconfig=None -Djava.security.auth.login.config=" + jaas}, none: true},
		"none":        {none: true},
	} {
		s, err := resolve(c.args, c.environ)
		if err != nil || (s.mechanism == nil) != c.none {
			t.Errorf("%s: %v, %v", name, s, err)
		}
		if err != nil || c.none {
			continue
		}
		if id, err := exchange(s.mechanism, sasl.NewDigest(users)); id != "bob" || err != nil {
			t.Errorf("%s: %q, %v", name, id, err)
		}
	}
}

// TestSASL_Kerberos checks what a Krb5LoginModule needs. Exchanges are tests of sasl/kerberos.
func TestSASL_Kerberos(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string { return testca.WriteFile(t, filepath.Join(dir, name), []byte(text)) }
	conf := file("krb5.conf", "[libdefaults]\n default_realm = EX.TEST\n")
	// alice@EX.TEST with a key of 16 zeros.
	keytab := file("keytab", "\x05\x02\x00\x00\x00\x33\x00\x01\x00\x07EX.TEST\x00\x05alice\x00\x00\x00\x01\x00\x00\x00\x00\x01\x00\x11\x00\x10"+strings.Repeat("\x00", 20))
	for name, c := range map[string]struct{ options, conf, want string }{
		"keytab":       {`useKeyTab=true keyTab="` + keytab + `" principal="alice"`, conf, ""},
		"realm":        {`useKeyTab=true keyTab="` + keytab + `" principal="alice@OTHER.TEST"`, conf, "has no key of alice@OTHER.TEST"},
		"no keytab":    {`useKeyTab=true keyTab="` + dir + `/none" principal="alice"`, conf, "the keytab cannot be read"},
		"nothing":      {`principal="alice"`, conf, "useTicketCache=true"},
		"cache":        {`useTicketCache=true`, conf, dir + "/cc: no such file"},
		"no krb5.conf": {`useTicketCache=true`, dir + "/none", "no such file"},
	} {
		jaas := file("jaas", "Client { com.sun.security.auth.module.Krb5LoginModule required "+c.options+"; };")
		_, err := resolve([]string{"--jaas", jaas}, map[string]string{"CLIENT_JVMFLAGS": "-Djava.security.krb5.conf=" + c.conf, "KRB5CCNAME": "FILE:" + dir + "/cc"})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// exchange runs a mechanism with a server.
func exchange(client sasl.Client, server sasl.Server) (id string, err error) {
	c, err := client.New("localhost")
	if err != nil {
		return "", err
	}
	s := server.New()
	var challenge []byte
	for done := false; !done; {
		token, finished, err := c.Step(challenge)
		if err != nil || finished && token == nil {
			return id, err
		}
		if challenge, id, done, err = s.Step(token); err != nil || finished {
			return id, err
		}
	}
	_, _, err = c.Step(challenge)
	return id, err
}

// A server that does not answer in time may be paused: it finds a word afterwards, which it does
// not log, and no handshake.
func TestAdvice_SilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := resolve(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if advice := s.Advice(t.Context(), l.Addr().String(), os.ErrDeadlineExceeded); !errors.Is(advice, errSilent) {
		t.Errorf("advice %v", advice)
	}
	var sent []byte
	nc, err := l.Accept()
	if err == nil {
		sent, err = io.ReadAll(nc)
	}
	if string(sent) != "srvr\r\n\r\n\r\n\r\n" || err != nil {
		t.Errorf("sent %q, %v", sent, err)
	}
	if err := errors.Join(l.(*net.TCPListener).SetDeadline(time.Now().Add(50*time.Millisecond)), nc.Close()); err != nil {
		t.Fatal(err)
	}
	if nc, err := l.Accept(); err == nil {
		t.Errorf("connected again from %v", nc.RemoteAddr())
	}
}

// A port is known by the first bytes of its answer to a word. A server without a quorum says so,
// and then no reason is guessed.
func TestPurpose(t *testing.T) {
	server := testca.New(t, "ca").Issue(t, testca.Spec{Hosts: []string{"127.0.0.1"}}).Server()
	for answer, want := range map[string]neterr.WrongPort{
		"Zookeeper version: 3.9.5": neterr.ForClients, "srvr is not executed because": neterr.ForClients,
		"This ZooKeeper instance is not currently serving requests": neterr.ForClients,
		"HTTP/1.1 400 Bad Request":                                  neterr.ForHTTP, "<html>": neterr.ForHTTP, "SSH-2.0": neterr.ForOthers, neterr.MemberMagic: neterr.ForMembers,
		"": "", "\x00\x00\x00\x05": "",
	} {
		address := serve(t, nil, answer)
		if got := Purpose(t.Context(), address); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
		advice := new(Security).Advice(t.Context(), address, io.EOF)
		switch away := strings.HasPrefix(answer, "This"); {
		case away && !errors.Is(advice, neterr.Away), !away && want != neterr.ForClients && want != "" && !errors.Is(advice, want):
			t.Errorf("%q: advice %v", answer, advice)
		case !away && (want == neterr.ForClients || want == "") && advice != nil:
			t.Errorf("%q: advice %v", answer, advice)
		}
	}
	if got := Purpose(t.Context(), serve(t, server, "imok")); got != neterr.ForTLS {
		t.Errorf("TLS: %q", got)
	}
	if advice := new(Security).Advice(t.Context(), serve(t, nil, ""), neterr.ErrNoAnswer); !errors.Is(advice, errClosed) {
		t.Errorf("a port that closes: advice %v", advice)
	}
}

// TestAdvice checks that the error of a connection that fails names the flag that helps.
func TestAdvice(t *testing.T) {
	ca, other := testca.New(t, "ca"), testca.New(t, "other")
	server, client, foreign := ca.Issue(t, testca.Spec{Hosts: []string{"127.0.0.1"}}), ca.Issue(t, testca.Spec{}).Files(t), other.Issue(t, testca.Spec{}).Files(t)
	expired := ca.Issue(t, testca.Spec{Hosts: []string{"127.0.0.1"}, NotAfter: testca.Begin.AddDate(1, 0, 0)})
	plain, mutual, old := serve(t, nil, ""), serve(t, server.Server(), "imok"), serve(t, expired.Server(), "imok")
	gone := plain[:strings.LastIndexByte(plain, ':')] + ":1"
	for _, c := range []struct {
		address string
		args    []string
		want    string // "": no advice
	}{
		{mutual, nil, "this port speaks TLS: add --tls"},
		{plain, nil, ""},
		{gone, nil, ""},
		{gone, []string{"--tls"}, ""},
		{plain, []string{"--tls"}, "leave --tls out"},
		{mutual, []string{"--tls"}, "--cacert"},
		{mutual, []string{"--cacert", client.CA}, "--cert and --key"},
		{mutual, []string{"--cacert", client.CA, "--cert", foreign.Key}, "does not accept the certificate of --cert"},
		{mutual, []string{"--cacert", client.CA, "--cert", client.Key, "--tls-server-name", "elsewhere"}, "--tls-server-name"},
		{old, []string{"--cacert", client.CA, "--cert", client.Key}, "the server needs another certificate"},
	} {
		s, err := resolve(c.args, nil)
		if err != nil {
			t.Errorf("%q: %v", c.args, err)
			continue
		}
		_, err = ask(t.Context(), s, c.address)
		if err == nil {
			t.Errorf("%q: it works", c.args)
			continue
		}
		advice := s.Advice(t.Context(), c.address, err)
		if c.want == "" && advice != nil || c.want != "" && (advice == nil || !strings.Contains(advice.Error(), c.want)) {
			t.Errorf("%q: advice %v about %v", c.args, advice, err)
		}
		want := neterr.Advised(err, advice).Error()
		if errors.As(advice, new(neterr.WrongPort)) {
			want = c.address + ": " + want
		} else if !strings.HasPrefix(want, err.Error()) {
			t.Errorf("%q: %q does not begin with %v", c.args, want, err)
		}
		if got := s.Explain(t.Context(), c.address, err).Error(); got != want {
			t.Errorf("%q: explained as %q, want %q", c.args, got, want)
		}
	}
}
