package main

import (
	"crypto/sha1" //nolint:gosec // the digest scheme is defined with it
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/gozkd/gozkd/internal/testca"
	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/proto/jute"
	"github.com/gozkd/gozkd/sasl"
)

// plant makes secrets: each place where one is configured or sent has another.
type plant map[string]string

func (p plant) secret(where string) string {
	s := fmt.Sprintf("s3cr3t%02dplantedhere", len(p))
	p[where] = s
	return s
}

// digestOf returns the digest of user:password, which is a secret, too.
func (p plant) digestOf(user, password string) string {
	sum := sha1.Sum([]byte(user + ":" + password)) //nolint:gosec // see the import
	hash := base64.StdEncoding.EncodeToString(sum[:])
	p["hash of "+password] = hash
	return user + ":" + hash
}

// session is a connection that sends requests, whatever their answer.
type session struct {
	t    *testing.T
	conn net.Conn
}

func (s *session) send(frame []byte) {
	s.t.Helper()
	if _, err := s.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)); err != nil {
		s.t.Fatal(err)
	}
}

// receive returns the next frame, or nil if the server closed the connection.
func (s *session) receive() []byte {
	var n [4]byte
	if _, err := io.ReadFull(s.conn, n[:]); err != nil {
		return nil
	}
	frame := make([]byte, binary.BigEndian.Uint32(n[:]))
	if _, err := io.ReadFull(s.conn, frame); err != nil {
		return nil
	}
	return frame
}

func (s *session) call(op proto.OpCode, body []byte) {
	s.t.Helper()
	s.send(append((&proto.RequestHeader{Xid: 1, Op: op}).Append(nil), body...))
	s.receive()
}

// sasl plays a DIGEST-MD5 exchange to its end, or to its failure.
func (s *session) sasl(user, password string) {
	s.t.Helper()
	client, err := sasl.NewDigestClient(user, password).New("zk-sasl-md5")
	if err != nil {
		s.t.Fatal(err)
	}
	token, done, err := client.Step(nil)
	for i := 0; i < 3 && err == nil && !done; i++ {
		s.send(append((&proto.RequestHeader{Xid: 1, Op: proto.OpSASL}).Append(nil), (&proto.TokenRecord{Token: token}).Append(nil)...))
		reply := s.receive()
		if len(reply) < proto.ReplyHeaderBytes {
			return
		}
		d := jute.NewDecoder(reply[proto.ReplyHeaderBytes:])
		var r proto.TokenRecord
		r.Decode(&d)
		token, done, err = client.Step(r.Token)
	}
}

// attach creates or resumes a session, and returns its id and password.
func attach(t *testing.T, address string, id proto.SessionID, passwd []byte) (*session, proto.ConnectResponse) {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(watchdog.Context(t, 20*time.Second), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s := &session{t, conn}
	s.send((&proto.ConnectRequest{TimeoutMs: 30_000, SessionID: id, Passwd: passwd}).Append(nil))
	d := jute.NewDecoder(s.receive())
	var r proto.ConnectResponse
	r.Decode(&d)
	if d.Err() != nil {
		t.Fatal(d.Err())
	}
	return s, r
}

// TestServe_TellsNoSecret (T6): a server is given a secret in every place that takes one, and is
// asked everything. Nothing that it says contains a secret, or the hash of one. The audit log in
// ZooKeeper's format is the exception: it has the ACLs that clients set.
func TestServe_TellsNoSecret(t *testing.T) {
	dir, planted := t.TempDir(), plant{}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.ToSlash(path)
	}
	super := planted.secret("superDigest")
	token := planted.secret("gozkd.admin.tokenFile")
	ca := testca.New(t, "root")
	cert := ca.Issue(t, testca.Spec{CN: "server"})
	keyPassword, trustPassword := planted.secret("ssl.keyStore.password"), planted.secret("ssl.trustStore.passwordPath")
	keys, err := pkcs12.Modern.Encode(cert.PrivateKey, cert.Leaf, nil, keyPassword)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := pkcs12.Modern.EncodeTrustStore([]*x509.Certificate{ca.Leaf}, trustPassword)
	if err != nil {
		t.Fatal(err)
	}
	planted["the key"] = strings.ReplaceAll(string(cert.KeyPEM(t))[30:90], "\n", "")
	cfg := write("zoo.cfg", strings.Join([]string{
		"dataDir=" + filepath.ToSlash(filepath.Join(dir, "data")), "clientPort=0", "tickTime=500", "gozkd.logLevel=trace", "4lw.commands.whitelist=*",
		"DigestAuthenticationProvider.superDigest=" + planted.digestOf("super", super),
		"gozkd.web.roles=read=digest:" + planted.digestOf("dave", planted.secret("gozkd.web.roles")),
		"gozkd.peer.secretFile=" + write("secret", planted.secret("gozkd.peer.secretFile")),
		"gozkd.admin.tokenFile=" + write("token", token),
		"SASLAuthenticationProvider.superPassword=" + planted.secret("superPassword"),
		"java.security.auth.login.config=" + write("jaas", "Server { org.apache.zookeeper.server.auth.DigestLoginModule required user_bob=\""+planted.secret("JAAS")+"\"; };"),
		"client.portUnification=true", "ssl.keyStore.location=" + write("keys.p12", string(keys)), "ssl.keyStore.password=" + keyPassword,
		"ssl.trustStore.location=" + write("trust.p12", string(trust)), "ssl.trustStore.passwordPath=" + write("password", trustPassword),
		"ssl.quorum.trustStore.password=" + planted.secret("ssl.quorum.trustStore.password"),
		"admin.serverPort=0", "admin.rateLimiterIntervalInMS=0", "audit.enable=true", "gozkd.audit.reads=/", "gozkd.slowRequestThresholdMs=1",
		"metricsProvider.className=org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider", "metricsProvider.httpPort=0", "metricsProvider.httpHost=127.0.0.1",
	}, "\n"))
	p := launch(t, "serve", cfg, "-Dzookeeper.ssl.quorum.keyStore.password="+planted.secret("a system property"))
	local, err := os.ReadFile(filepath.Join(dir, "data", "admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	planted["admin.token"] = strings.TrimSpace(string(local))

	s, r := attach(t, p.ports.Client, 0, make([]byte, proto.PasswdBytes))
	planted["session password"], planted["session password in hex"] = string(r.Passwd), hex.EncodeToString(r.Passwd)
	planted["session password in base64"] = base64.StdEncoding.EncodeToString(r.Passwd)
	auth := func(s *session, scheme, credentials string) {
		s.call(proto.OpAuth, (&proto.AuthRequest{Scheme: scheme, Auth: []byte(credentials)}).Append(nil))
	}
	bob := planted.secret("addauth")
	s.call(proto.OpSASL, (&proto.TokenRecord{Token: []byte{}}).Append(nil))
	s.call(proto.OpSASL, (&proto.TokenRecord{Token: []byte(`username="bob",response=` + planted.secret("a SASL token"))}).Append(nil))
	s, r = attach(t, p.ports.Client, r.SessionID, r.Passwd) // the failure has closed the connection
	auth(s, "digest", "bob:"+bob)
	auth(s, "digest", "super:"+super)
	auth(s, "digest", "no-colon") // all of it is the name of a user
	acl := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "digest", ID: planted.digestOf("bob", bob)}}}
	s.call(proto.OpCreate, (&proto.CreateRequest{Path: "/bob", ACL: acl}).Append(nil, proto.OpCreate))
	s.call(proto.OpSetACL, (&proto.SetACLRequest{Path: "/bob", ACL: acl, Version: -1}).Append(nil))
	s.call(proto.OpSetACL, (&proto.SetACLRequest{Path: "/none", ACL: acl, Version: -1}).Append(nil))
	own := []proto.ACL{{Perms: proto.PermAll, ID: proto.ID{Scheme: "auth", ID: "bob:" + planted.secret("an ACL of scheme auth")}}}
	s.call(proto.OpSetACL, (&proto.SetACLRequest{Path: "/bob", ACL: own, Version: -1}).Append(nil))
	s.call(proto.OpGetACL, (&proto.PathWatchRequest{Path: "/bob"}).Append(nil))
	attach(t, p.ports.Client, r.SessionID, []byte(planted.secret("wrong password"))[:proto.PasswdBytes])
	for user, password := range map[string]string{"bob": planted["JAAS"], "super": planted["superPassword"], "eve": planted.secret("a wrong password of SASL")} {
		s, _ := attach(t, p.ports.Client, 0, make([]byte, proto.PasswdBytes))
		s.sasl(user, password)
		s.call(proto.OpWhoAmI, nil)
	}
	stranger, _ := attach(t, p.ports.Client, 0, make([]byte, proto.PasswdBytes))
	auth(stranger, "nobody", planted.secret("addauth of an unknown scheme"))

	text, err := os.ReadFile(cfg)
	if err != nil {
		t.Fatal(err)
	}
	wrong := write("wrong.cfg", strings.ReplaceAll(string(text), keyPassword, planted.secret("a wrong password of a key store")))
	var stdout, stderr strings.Builder
	if status := run("gozkd", []string{"serve", wrong}, outside(&stdout, &stderr)); status == 0 || !strings.Contains(stderr.String(), "ssl.keyStore") {
		t.Errorf("with a wrong password: %d %s", status, &stderr)
	}
	said := map[string]string{"a start that fails": stderr.String(), "output of a start that fails": stdout.String()}
	stdout.Reset()
	stderr.Reset()
	run("gozkd", []string{"check-config", cfg}, outside(&stdout, &stderr))
	said["check-config"] = stdout.String() + stderr.String()
	for w := range strings.FieldsSeq("conf cons crst dirs dump envi gtmk hash isro mntr ruok srst srvr stat wchc wchp wchs hotp kind") {
		said["word "+w] = word(t, p.ports.Client, w)
	}
	_, list := fetch(t, p.ports.Admin)
	for link := range strings.SplitSeq(list, "\n") {
		name := strings.Trim(link[max(0, strings.IndexByte(link, '>')):], "></abr ")
		if name == "" || name == "snapshot" || name == "restore" { // for administrators, who get the sessions and ACLs
			continue
		}
		method := http.MethodGet
		if name == "reload" || name == "shed_connections" {
			method = http.MethodPost
		}
		for _, who := range []string{"", "Bearer " + token, "digest super:" + super, "digest bob:" + bob, "digest " + planted.secret("wrong credentials")} {
			_, said["admin "+name+" by "+fmt.Sprint(len(said))] = request(t, method, p.ports.Admin+"/"+name, "Authorization", who)
		}
	}
	_, said["metrics"] = fetch(t, p.ports.Metrics)
	if n := len(said); n < 100 {
		t.Errorf("only %d answers", n)
	}
	if status := p.Stop(syscall.SIGTERM); status != 0 {
		t.Errorf("exit status %d", status)
	}
	said["log"] = p.Stderr.String()
	audit, err := os.ReadFile(filepath.Join(dir, "data", "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	said["audit log"] = string(audit)
	if !strings.Contains(said["log"], "[TRACE]") && !strings.Contains(said["log"], "[DEBUG]") || !strings.Contains(said["audit log"], `"setAcl"`) ||
		!strings.Contains(said["audit log"], `{"scheme":"sasl","id":"bob"}`) || !strings.Contains(said["audit log"], `"detail":"sasl"`) {
		t.Errorf("the logs have less than they should: %.2000s", said["log"])
	}
	for _, where := range slices.Sorted(maps.Keys(planted)) {
		for _, by := range slices.Sorted(maps.Keys(said)) {
			if i := strings.Index(said[by], planted[where]); i >= 0 {
				t.Errorf("%s contains the secret of %s: …%.200s", by, where, said[by][max(0, i-100):])
			}
		}
	}
}
