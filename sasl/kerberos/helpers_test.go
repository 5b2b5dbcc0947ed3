package kerberos

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/sasl/kerberos/principal"
)

const (
	testRealm   = "EX.TEST"
	testService = "zookeeper/host.ex.test"
)

// fakeKDC makes tickets, as a KDC would that shares keys with the server.
type fakeKDC struct {
	t      testing.TB
	file   string                        // the keytab
	keys   map[int32]types.EncryptionKey // of the service, by encryption type
	change func(*messages.EncTicketPart) // of tickets that are made
	etype  int32                         // of the key in the ticket
	kvno   int
}

func newKDC(t testing.TB) *fakeKDC {
	k := &fakeKDC{t: t, file: filepath.Join(t.TempDir(), "zk.keytab"), keys: make(map[int32]types.EncryptionKey), etype: 18, kvno: 2}
	k.export("secret", 2)
	return k
}

// export writes a keytab with keys of the service and replaces those of the KDC.
func (k *fakeKDC) export(password string, version uint8) {
	k.t.Helper()
	text := func(b []byte, s string) []byte { return append(binary.BigEndian.AppendUint16(b, uint16(len(s))), s...) }
	b := []byte{5, 2}
	for _, etype := range slices.Sorted(maps.Keys(keySizes)) {
		sum := sha256.Sum256([]byte(password)) // no KDC derives keys in this way, but it is fast
		k.keys[etype] = types.EncryptionKey{KeyType: etype, KeyValue: sum[:keySizes[etype]]}
		parts := strings.Split(testService, "/")
		entry := text(binary.BigEndian.AppendUint16(nil, uint16(len(parts))), testRealm)
		for _, p := range parts {
			entry = text(entry, p)
		}
		entry = append(entry, 0, 0, 0, 1, 0x65, 0, 0, 0, version, 0, byte(etype))
		entry = binary.BigEndian.AppendUint32(text(entry, string(k.keys[etype].KeyValue)), uint32(version))
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(entry))), entry...)
	}
	k.kvno = int(version)
	if err := os.WriteFile(k.file, b, 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// issue returns a ticket of a client for the service.
func (k *fakeKDC) issue(client string) ticket {
	k.t.Helper()
	session := types.EncryptionKey{KeyType: k.etype, KeyValue: make([]byte, keySizes[k.etype])}
	_, _ = rand.Read(session.KeyValue)
	name, realm := types.ParseSPNString(client)
	now := time.Now().UTC().Truncate(time.Second)
	part := messages.EncTicketPart{
		Flags: types.NewKrbFlags(), Key: session, CRealm: realm, CName: name,
		AuthTime: now, StartTime: now, EndTime: now.Add(10 * time.Hour),
	}
	if k.change != nil {
		k.change(&part)
	}
	b, err := asn1.Marshal(part)
	if err != nil {
		k.t.Fatal(err)
	}
	cipher := seal(k.t, k.keys[k.etype], asn1tools.AddASNAppTag(b, 3), usageTicket)
	service, _ := types.ParseSPNString(testService)
	return ticket{
		ticket: messages.Ticket{TktVNO: 5, Realm: testRealm, SName: service, EncPart: types.EncryptedData{EType: k.etype, KVNO: k.kvno, Cipher: cipher}},
		key:    session, realm: realm, name: name,
	}
}

func seal(t testing.TB, with types.EncryptionKey, text []byte, usage uint32) []byte {
	t.Helper()
	key, err := newKey(with)
	if err != nil {
		t.Fatal(err)
	}
	cipher, err := key.encrypt(text, usage)
	if err != nil {
		t.Fatal(err)
	}
	return cipher
}

// client returns a Client whose tickets are those of the KDC.
func (k *fakeKDC) client(name string, mutual bool) *Client {
	return &Client{
		config:  ClientConfig{Service: testService + "@" + testRealm, Mutual: mutual},
		tickets: func(principal.Name) (ticket, error) { return k.issue(name), nil },
	}
}

func (k *fakeKDC) server(change func(*ServerConfig)) *Server {
	k.t.Helper()
	rules, err := principal.ParseRules("DEFAULT", testRealm)
	if err != nil {
		k.t.Fatal(err)
	}
	c := ServerConfig{KeyTab: k.file, Principal: testService + "@" + testRealm, Mapping: principal.Mapping{Rules: rules}}
	if change != nil {
		change(&c)
	}
	s, err := NewServer(c)
	if err != nil {
		k.t.Fatal(err)
	}
	return s
}

// exchange plays a whole exchange and returns the id.
func exchange(c sasl.Client, s sasl.Server) (id string, err error) {
	client, err := c.New("host.ex.test")
	if err != nil {
		return "", err
	}
	server := s.New()
	var token []byte
	for {
		answer, clientDone, err := client.Step(token)
		if err != nil {
			return "", err
		}
		reply, id, done, err := server.Step(answer)
		if err != nil || done != clientDone {
			return "", errors.Join(err, map[bool]error{true: errors.New("only one side is done")}[err == nil])
		}
		if done {
			return id, nil
		}
		token = reply
	}
}

// wantRefused checks that err is a refusal that says why, and what it must not say.
func wantRefused(t *testing.T, err error, why string) {
	t.Helper()
	if !errors.Is(err, sasl.ErrRefused) || !strings.Contains(err.Error(), why) {
		t.Errorf("got %v, want a refusal because of %q", err, why)
	}
}

// request returns the AP-REQ token of a client, and the rest of its exchange.
func (k *fakeKDC) request(name string, mutual bool) ([]byte, *initiation) {
	k.t.Helper()
	e, err := k.client(name, mutual).New("host.ex.test")
	if err != nil {
		k.t.Fatal(err)
	}
	token, _, err := e.Step(nil)
	if err != nil {
		k.t.Fatal(err)
	}
	return token, e.(*initiation)
}

// requestWith returns the AP-REQ token with another authenticator than the one that a Client makes.
func (k *fakeKDC) requestWith(name string, change func(*types.Authenticator)) []byte {
	k.t.Helper()
	_, e := k.request(name, false)
	a := e.authenticator
	change(&a)
	req, err := messages.NewAPReq(e.ticket.ticket, e.ticket.key, a)
	if err != nil {
		k.t.Fatal(err)
	}
	message, err := req.Marshal()
	if err != nil {
		k.t.Fatal(err)
	}
	return frame(kindAPReq, message)
}

// noSecret fails the test if any of the secrets is in text, as it is, in hexadecimal or in base64.
func noSecret(t *testing.T, text string, secrets ...[]byte) {
	t.Helper()
	for _, secret := range secrets {
		if strings.Contains(text, string(secret)) || strings.Contains(text, hex.EncodeToString(secret)) || strings.Contains(text, base64.StdEncoding.EncodeToString(secret)) {
			t.Errorf("a secret is in %q", text)
		}
	}
}
