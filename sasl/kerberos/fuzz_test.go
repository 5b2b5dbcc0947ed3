package kerberos

import (
	"encoding/asn1"
	"encoding/binary"
	"testing"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// FuzzServer hands tokens to a server: as they are, and as the parts of a request that an
// authenticated client could encrypt.
func FuzzServer(f *testing.F) {
	k := newKDC(f)
	s := k.server(func(c *ServerConfig) { c.Principal = "*" })
	token, e := k.request("alice@EX.TEST", false)
	f.Add(byte(0), token)
	plain, err := e.authenticator.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(byte(1), plain)
	if _, err := e.session.decrypt(e.ticket.ticket.EncPart.Cipher, usageTicket); err == nil {
		f.Fatal("the ticket is encrypted with its own key")
	}
	service, err := newKey(k.keys[18])
	if err != nil {
		f.Fatal(err)
	}
	part, err := service.decrypt(e.ticket.ticket.EncPart.Cipher, usageTicket)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(byte(2), part)
	wrapped, err := choose(e, choice)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(byte(3), wrapped)
	sealedToken, err := sealToken(e, choice, 3)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(byte(3), sealedToken)
	established := channel{key: e.channel.key, acceptor: true}
	req := messages.APReq{PVNO: 5, MsgType: 14, APOptions: types.NewKrbFlags(), Ticket: e.ticket.ticket}
	f.Fuzz(func(t *testing.T, where byte, b []byte) {
		req := req
		switch where % 4 {
		case 1:
			req.EncryptedAuthenticator = types.EncryptedData{EType: 18, Cipher: seal(t, e.ticket.key, b, usageAuthenticator)}
		case 2:
			req.Ticket.EncPart.Cipher = seal(t, k.keys[18], b, usageTicket)
			req.EncryptedAuthenticator = types.EncryptedData{EType: 18, Cipher: seal(t, e.ticket.key, plain, usageAuthenticator)}
		case 3:
			if payload, _, err := established.unwrap(b); err == nil && len(payload) > len(b) {
				t.Fatalf("a payload of %d bytes in a token of %d", len(payload), len(b))
			}
			return
		}
		if where%4 != 0 {
			message, err := req.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			b = frame(kindAPReq, message)
		}
		reply, id, done, err := s.New().Step(b)
		if done || id != "" || (err == nil) == (len(reply) == 0) {
			t.Fatalf("%x, %q, %t, %v after the first token", reply, id, done, err)
		}
	})
}

// FuzzClient hands tokens of a server to a client: in place of an AP-REP, within one, and in place
// of the wrap token.
func FuzzClient(f *testing.F) {
	k := newKDC(f)
	s := k.server(nil)
	token, e := k.request("alice@EX.TEST", true)
	reply, _, _, err := s.New().Step(token)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(byte(0), reply)
	_, message, err := unframe(reply)
	if err != nil {
		f.Fatal(err)
	}
	var rep messages.APRep
	if err := rep.Unmarshal(message); err != nil {
		f.Fatal(err)
	}
	part, err := e.session.decrypt(rep.EncPart.Cipher, usageAPRep)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(byte(1), part)
	wrapped, err := channel{key: e.channel.key, acceptor: true}.wrap(offer, 1)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(byte(2), wrapped)
	f.Fuzz(func(t *testing.T, where byte, b []byte) {
		again := *e
		switch where % 3 {
		case 0:
			again.next = again.check
		case 1:
			again.next = again.check
			message, err := asn1.MarshalWithParams(apRep{version5, msgAPRep, encryptedData{18, seal(t, e.ticket.key, b, usageAPRep)}}, "application,explicit,tag:15")
			if err != nil {
				t.Fatal(err)
			}
			b = frame(kindAPRep, message)
		case 2:
			again.next = again.choose
		}
		_, _, _ = again.Step(b)
	})
}

// FuzzTicketCache checks that no file makes a panic, and that a name and a key come through.
func FuzzTicketCache(f *testing.F) {
	text := func(b []byte, s string) []byte { return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...) }
	name := func(b []byte, parts ...string) []byte {
		b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, 1), uint32(len(parts)))
		b = text(b, testRealm)
		for _, p := range parts {
			b = text(b, p)
		}
		return b
	}
	k := newKDC(f)
	issued := k.issue("alice@EX.TEST")
	tgt, err := issued.ticket.Marshal()
	if err != nil {
		f.Fatal(err)
	}
	file := name([]byte{5, 4, 0, 12, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0}, "alice")
	file = name(name(file, "alice"), "krbtgt", testRealm)
	file = text(append(file, 0, 18), string(issued.key.KeyValue))
	file = append(file, make([]byte, 4*4+1+4)...)
	file = append(file, 0, 0, 0, 1, 0, 2, 0, 0, 0, 4, 127, 0, 0, 1, 0, 0, 0, 0) // an address
	file = text(text(file, string(tgt)), "")
	cache, err := parseCache(file)
	if err != nil || cache.DefaultPrincipal.Realm != testRealm || len(cache.Credentials) != 1 || string(cache.Credentials[0].Key.KeyValue) != string(issued.key.KeyValue) {
		f.Fatalf("%+v, %v", cache, err)
	}
	f.Add(file)
	f.Add(file[:len(file)-9])
	f.Fuzz(func(t *testing.T, b []byte) {
		cache, err := parseCache(b)
		if err != nil {
			return
		}
		_, _ = client.NewFromCCache(cache, config.New())
	})
}
