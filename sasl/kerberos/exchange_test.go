package kerberos

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"

	"github.com/gozkd/gozkd/sasl/kerberos/principal"
)

func TestExchange_Succeeds(t *testing.T) {
	k := newKDC(t)
	s := k.server(nil)
	for etype := range keySizes {
		for _, mutual := range []bool{false, true} {
			k.etype = etype
			id, err := exchange(k.client("alice@EX.TEST", mutual), s)
			if err != nil || id != "alice@EX.TEST" {
				t.Errorf("encryption type %d, mutual %t: %q, %v", etype, mutual, id, err)
			}
		}
	}
}

func TestExchange_NamesAreMapped(t *testing.T) {
	k := newKDC(t)
	rules, err := principal.ParseRules("RULE:[2:$1@$0](zk@.*)s/@.*/-service/DEFAULT", testRealm)
	if err != nil {
		t.Fatal(err)
	}
	s := k.server(func(c *ServerConfig) {
		c.Mapping = principal.Mapping{Rules: rules, RemoveHost: true, RemoveRealm: true}
	})
	if id, err := exchange(k.client("zk/h.ex.test@EX.TEST", false), s); err != nil || id != "zk-service" {
		t.Errorf("%q, %v", id, err)
	}
	// ZooKeeper would take the name that the client asks to act for.
	_, err = exchange(k.client("alice@OTHER.TEST", false), s)
	wantRefused(t, err, "no rule of security.auth_to_local applies")
	_, err = exchange(k.client("a/b/c@EX.TEST", false), s)
	wantRefused(t, err, "3 components")
}

func TestServer_AnyPrincipalOfTheKeytab(t *testing.T) {
	k := newKDC(t)
	s := k.server(func(c *ServerConfig) { c.Principal = "*" })
	if id, err := exchange(k.client("alice@EX.TEST", false), s); err != nil || id != "alice@EX.TEST" {
		t.Errorf("%q, %v", id, err)
	}
}

// TestServer_RefusesTickets changes what the KDC puts into a ticket.
func TestServer_RefusesTickets(t *testing.T) {
	k := newKDC(t)
	s := k.server(nil)
	for _, c := range []struct {
		change func(*messages.EncTicketPart)
		why    string
	}{
		{func(p *messages.EncTicketPart) { p.EndTime = time.Now().UTC().Add(-6 * time.Minute) }, "expired"},
		{func(p *messages.EncTicketPart) { p.StartTime = time.Now().UTC().Add(time.Hour) }, "not yet valid"},
		{func(p *messages.EncTicketPart) {
			p.StartTime, p.AuthTime = time.Time{}, time.Now().UTC().Add(time.Hour)
		}, "not yet valid"},
		{func(p *messages.EncTicketPart) { types.SetFlag(&p.Flags, 7) }, "not yet valid"},
		{func(p *messages.EncTicketPart) { p.Transited.Contents = []byte("A.TEST") }, "other realms"},
		{func(p *messages.EncTicketPart) { p.CName.NameString = []string{"a/b"} }, "not allowed"},
		{func(p *messages.EncTicketPart) { p.CName.NameString = nil }, "0 components"},
		{func(p *messages.EncTicketPart) { p.Key.KeyType = 23 }, "type 23"},
		{func(p *messages.EncTicketPart) { p.Key.KeyValue = p.Key.KeyValue[:5] }, "32 bytes"},
		{func(p *messages.EncTicketPart) { p.Key.KeyValue = bytes.Repeat([]byte{1}, 32) }, "authenticator cannot be decrypted"},
	} {
		k.change = c.change
		_, err := exchange(k.client("alice@EX.TEST", false), s)
		wantRefused(t, err, c.why)
	}
	k.change = func(p *messages.EncTicketPart) {
		p.Transited.Contents = []byte("A.TEST")
		types.SetFlag(&p.Flags, 12)
	}
	if _, err := exchange(k.client("alice@EX.TEST", false), s); err != nil {
		t.Errorf("the KDC has checked the realms: %v", err)
	}
}

// TestServer_RefusesRequests changes what a client that owns a ticket sends.
func TestServer_RefusesRequests(t *testing.T) {
	k := newKDC(t)
	s := k.server(nil)
	first := func(token []byte) error { _, _, _, err := s.New().Step(token); return err }
	for _, c := range []struct {
		change func(*types.Authenticator)
		why    string
	}{
		// gokrb5's own check compares the name only, and takes the realm of the authenticator.
		{func(a *types.Authenticator) { a.CRealm = "ADMIN.TEST" }, "another client"},
		{func(a *types.Authenticator) { a.CName.NameString = []string{"admin"} }, "another client"},
		{func(a *types.Authenticator) { a.CName.NameString = nil }, "another client"},
		{func(a *types.Authenticator) { a.CTime = a.CTime.Add(-6 * time.Minute) }, "clocks"},
		{func(a *types.Authenticator) { a.CTime = a.CTime.Add(6 * time.Minute) }, "clocks"},
		{func(a *types.Authenticator) { a.CTime = a.CTime.AddDate(7000, 0, 0) }, "clocks"},
		{func(a *types.Authenticator) { a.Cusec = -1 }, "no time"},
		{func(a *types.Authenticator) { a.AVNO = 4 }, "another client"},
		{func(a *types.Authenticator) { a.Cksum = types.Checksum{} }, "not one of GSS-API"},
		{func(a *types.Authenticator) { a.Cksum.Checksum = a.Cksum.Checksum[:20] }, "not one of GSS-API"},
		{func(a *types.Authenticator) { a.Cksum.Checksum[0] = 17 }, "not one of GSS-API"},
		{func(a *types.Authenticator) { a.SubKey = types.EncryptionKey{KeyType: 23, KeyValue: make([]byte, 16)} }, "type 23"},
		{func(a *types.Authenticator) { a.SubKey.KeyValue = a.SubKey.KeyValue[:1] }, "32 bytes"},
	} {
		wantRefused(t, first(k.requestWith("alice@EX.TEST", c.change)), c.why)
	}
	if err := first(k.requestWith("alice@EX.TEST", func(a *types.Authenticator) { a.SubKey = types.EncryptionKey{} })); err != nil {
		t.Errorf("no key of the client's own: %v", err)
	}
	wantRefused(t, first(nil), "no GSS-API token")
	wantRefused(t, first(make([]byte, maxToken+1)), "allowed are 65536")
	good, _ := k.request("alice@EX.TEST", false)
	_, message, err := unframe(good)
	if err != nil {
		t.Fatal(err)
	}
	wantRefused(t, first(frame(kindAPRep, message)), "not an AP-REQ")
	wantRefused(t, first(append(good, 0)), "no GSS-API token")
	// Each of these makes gokrb5 panic: it takes slices and bits without looking at lengths.
	for _, c := range []struct {
		change func(*messages.APReq)
		why    string
	}{
		{func(r *messages.APReq) { r.APOptions = asn1.BitString{} }, ""},
		{func(r *messages.APReq) { r.Ticket.SName.NameString = nil }, "a ticket for"},
		{func(r *messages.APReq) { r.Ticket.EncPart.Cipher = []byte{1, 2, 3} }, "cannot be decrypted"},
		{func(r *messages.APReq) { r.EncryptedAuthenticator.Cipher = nil }, "cannot be decrypted"},
		{func(r *messages.APReq) { r.Ticket.EncPart.EType = 23 }, "type 23"},
		{func(r *messages.APReq) { r.Ticket.EncPart.KVNO = 7 }, "version 7 (of this type it has the versions [2])"},
		{func(r *messages.APReq) { types.SetFlag(&r.APOptions, 1) }, "user-to-user"},
		{func(r *messages.APReq) { r.Ticket.TktVNO = 4 }, "not of Kerberos 5"},
		{func(r *messages.APReq) { r.Ticket.SName.NameString = []string{"HTTP", "x"} }, `a ticket for "HTTP/x@EX.TEST"`},
	} {
		var req messages.APReq
		if err := req.Unmarshal(bytes.Clone(message)); err != nil { // it keeps slices of it
			t.Fatal(err)
		}
		c.change(&req)
		changed, err := req.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if err = first(frame(kindAPReq, changed)); c.why != "" {
			wantRefused(t, err, c.why)
		} else if err != nil {
			t.Errorf("AP options without bits: %v", err)
		}
	}
}

// TestServer_ChecksTheChoice changes the last token of a client.
func TestServer_ChecksTheChoice(t *testing.T) {
	k := newKDC(t)
	s := k.server(nil)
	for _, mutual := range []bool{false, true} {
		for name, c := range map[string]struct {
			make func(e *initiation) ([]byte, error)
			why  string // "": accepted
		}{
			"rotated":         {func(e *initiation) ([]byte, error) { return rotate(e, choice, 5) }, ""},
			"rotated by more": {func(e *initiation) ([]byte, error) { return rotate(e, choice, 100) }, ""},
			"sealed":          {func(e *initiation) ([]byte, error) { return sealToken(e, choice, 0) }, ""},
			"sealed, filled":  {func(e *initiation) ([]byte, error) { return sealToken(e, choice, 3) }, ""},
			"acts for":        {func(e *initiation) ([]byte, error) { return choose(e, append(bytes.Clone(choice), "super"...)) }, ""},
			"integrity":       {func(e *initiation) ([]byte, error) { return choose(e, []byte{2, 0, 16, 0}) }, "security layer 0x2"},
			"too short":       {func(e *initiation) ([]byte, error) { return choose(e, choice[:3]) }, "has 3 bytes"},
			"empty":           {func(e *initiation) ([]byte, error) { return nil, nil }, "no wrap token"},
			"sequence": {func(e *initiation) ([]byte, error) {
				return e.channel.wrap(choice, uint64(e.authenticator.SeqNumber)+1)
			}, "sequence number"},
			"payload": {func(e *initiation) ([]byte, error) {
				token, err := choose(e, choice)
				token[wrapHeader] ^= 2
				return token, err
			}, "checksum"},
			"reflected": {func(e *initiation) ([]byte, error) {
				c := e.channel
				c.acceptor = true
				return c.wrap(choice, uint64(e.authenticator.SeqNumber))
			}, "flags"},
			"another key": {func(e *initiation) ([]byte, error) {
				c := e.channel
				c.key.bytes = bytes.Repeat([]byte{7}, 32)
				return c.wrap(choice, uint64(e.authenticator.SeqNumber))
			}, "checksum"},
			"cut": {func(e *initiation) ([]byte, error) {
				token, err := choose(e, choice)
				return token[:wrapHeader], err
			}, "checksum"},
			"sealed, cut": {func(e *initiation) ([]byte, error) {
				token, err := sealToken(e, choice, 0)
				return token[:wrapHeader+8], err
			}, "too short"},
		} {
			token, e := k.request("alice@EX.TEST", mutual)
			server := s.New()
			reply, _, _, err := server.Step(token)
			if err == nil && mutual {
				if _, _, err = e.Step(reply); err == nil {
					_, _, _, err = server.Step([]byte{})
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if token, err = c.make(e); err != nil {
				t.Fatal(err)
			}
			_, id, done, err := server.Step(token)
			switch {
			case c.why != "":
				t.Run(name, func(t *testing.T) { wantRefused(t, err, c.why) })
			case err != nil || !done || id != "alice@EX.TEST":
				t.Errorf("%s: %q, %t, %v", name, id, done, err)
			}
			if _, _, _, err := server.Step(nil); err == nil {
				t.Errorf("%s: a step after the end", name)
			}
		}
	}
}

func choose(e *initiation, payload []byte) ([]byte, error) {
	return e.channel.wrap(payload, uint64(e.authenticator.SeqNumber))
}

// rotate makes a token as MIT does: the end comes first.
func rotate(e *initiation, payload []byte, by uint16) ([]byte, error) {
	token, err := choose(e, payload)
	binary.BigEndian.PutUint16(token[6:], by)
	body := token[wrapHeader:]
	at := len(body) - int(by)%len(body)
	copy(body, append(bytes.Clone(body[at:]), body[:at]...))
	return token, err
}

// sealToken makes an encrypted token with so many bytes of filler, rotated as Microsoft does.
func sealToken(e *initiation, payload []byte, filler uint16) ([]byte, error) {
	header := []byte{5, 4, sealed, 0xff, byte(filler >> 8), byte(filler), 0, 0}
	header = binary.BigEndian.AppendUint64(header, uint64(e.authenticator.SeqNumber))
	text := append(append(bytes.Clone(payload), make([]byte, filler)...), header...)
	body, err := e.channel.key.encrypt(text, usageInitiatorSeal)
	at := len(body) - 28
	binary.BigEndian.PutUint16(header[6:], 28)
	return append(append(header, body[at:]...), body[:at]...), err
}

func TestServer_RefusesReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKDC(t)
		s := k.server(nil)
		token, _ := k.request("alice@EX.TEST", false)
		// Of many at once, one is accepted.
		var accepted atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if _, _, _, err := s.New().Step(token); err == nil {
					accepted.Add(1)
				}
			})
		}
		all.Wait()
		if accepted.Load() != 1 {
			t.Fatalf("accepted %d times", accepted.Load())
		}
		for _, wait := range []time.Duration{time.Second, 4 * time.Minute} {
			time.Sleep(wait)
			_, _, _, err := s.New().Step(token)
			wantRefused(t, err, "used before")
		}
		renewed, err := s.Renew(ServerConfig{KeyTab: k.file, Principal: "*", Mapping: s.config.Mapping, ClockSkew: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		_, _, _, err = renewed.New().Step(token)
		wantRefused(t, err, "used before")
		time.Sleep(time.Minute)
		_, _, _, err = s.New().Step(token)
		wantRefused(t, err, "clocks")
	})
}

// TestReplays_RememberForTwiceTheSkew: an authenticator from the future is valid for that long.
func TestReplays_RememberForTwiceTheSkew(t *testing.T) {
	start := time.Unix(1_700_000_000, 0)
	for first := range 25 {
		for later := range 25 {
			r := replays{keep: 10 * time.Second}
			at := func(second int) error { return r.add([]byte("x"), start.Add(time.Duration(second)*time.Second)) }
			_ = r.add([]byte("other"), start)
			if err := at(first); err != nil {
				t.Fatal(err)
			}
			if err := at(first + later); later < 10 && !errors.Is(err, errReplay) || later > 30 && err != nil {
				t.Errorf("added at %d s, again %d s later: %v", first, later, err)
			}
		}
	}
	full := replays{keep: time.Minute, limit: 2}
	for i := range 2 {
		if err := full.add([]byte{byte(i)}, start); err != nil {
			t.Fatal(err)
		}
	}
	if err := full.add([]byte{9}, start); !errors.Is(err, errReplaysFull) {
		t.Errorf("a third: %v", err)
	}
}

// TestClient_ChecksTheServer: with mutual authentication, a server without the key is found out.
func TestClient_ChecksTheServer(t *testing.T) {
	k := newKDC(t)
	s := k.server(nil)
	token, e := k.request("alice@EX.TEST", true)
	server := s.New()
	reply, _, _, err := server.Step(token)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := k.request("alice@EX.TEST", true)
	foreign, _, _, err := s.New().Step(other)
	if err != nil {
		t.Fatal(err)
	}
	for name, answer := range map[string][]byte{
		"of another exchange": foreign,
		"an error":            frame(kindError, []byte{1}),
		"nothing":             {},
		"cut":                 frame(kindAPRep, reply[20:]),
		"a wrap token":        func() []byte { w, _ := e.channel.wrap(offer, 1); return w }(),
	} {
		again := *e
		again.next = again.check
		if _, _, err := again.Step(answer); err == nil {
			t.Errorf("%s: taken for an AP-REP", name)
		}
	}
	if empty, done, err := e.Step(reply); err != nil || done || empty == nil || len(empty) != 0 {
		t.Fatalf("%v, %t, %v", empty, done, err)
	}
	if _, _, _, err := server.Step([]byte{1}); err == nil {
		t.Error("the token after the AP-REP is not empty")
	}
}

// TestClient_HonoursTheKeyOfTheServer: acceptors of MIT choose a key of their own.
func TestClient_HonoursTheKeyOfTheServer(t *testing.T) {
	k := newKDC(t)
	_, e := k.request("alice@EX.TEST", true)
	subkey := types.EncryptionKey{KeyType: 18, KeyValue: bytes.Repeat([]byte{3}, 32)}
	part, err := asn1.Marshal(messages.EncAPRepPart{
		CTime: e.authenticator.CTime.Truncate(time.Second), Cusec: e.authenticator.Cusec, Subkey: subkey, SequenceNumber: 77,
	})
	if err != nil {
		t.Fatal(err)
	}
	rep := messages.APRep{PVNO: 5, MsgType: msgAPRep, EncPart: types.EncryptedData{EType: 18, Cipher: seal(t, e.ticket.key, asn1tools.AddASNAppTag(part, 27), usageAPRep)}}
	message, err := asn1.Marshal(rep)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.Step(frame(kindAPRep, asn1tools.AddASNAppTag(message, 15))); err != nil {
		t.Fatal(err)
	}
	chosen, err := newKey(subkey)
	if err != nil {
		t.Fatal(err)
	}
	server := channel{key: chosen, acceptor: true, subkeyOfAcceptor: true}
	token, err := server.wrap(offer, 77)
	if err != nil {
		t.Fatal(err)
	}
	answer, done, err := e.Step(token)
	if err != nil || !done {
		t.Fatal(done, err)
	}
	if payload, _, err := server.unwrap(answer); err != nil || !bytes.Equal(payload, choice) {
		t.Errorf("%x, %v", payload, err)
	}
}

func ExampleServer() {
	_, err := NewServer(ServerConfig{KeyTab: "/nowhere/zk.keytab", Principal: "zookeeper/host.ex.test@EX.TEST"})
	fmt.Println(errors.Is(err, fs.ErrNotExist))
	// Output: true
}
