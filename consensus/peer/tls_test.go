package peer

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gozkd/gozkd/internal/memberid"
	"github.com/gozkd/gozkd/internal/testca"
)

// chainOnly is a client that verifies the chain of the server, and not its host.
func chainOnly(ca *testca.CA, c *testca.Cert) func(host string) *tls.Config {
	return func(host string) *tls.Config {
		cfg := c.Client(host)
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c.Certificate, nil } // whoever the server trusts
		cfg.InsecureSkipVerify = true
		cfg.VerifyConnection = func(cs tls.ConnectionState) error {
			_, err := cs.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: ca.Pool()})
			return err
		}
		return cfg
	}
}

// certified returns a configuration with a certificate.
func certified(t testing.TB, ca *testca.CA, mode TLSMode, spec testca.Spec) TLS {
	c := ca.Issue(t, spec)
	return TLS{Mode: mode, Server: c.Server(), Client: chainOnly(ca, c)}
}

// secured lets a member speak TLS, with a certificate for its host and, unless they are nil, with
// these names instead.
func (w *world) secured(t testing.TB, ca *testca.CA, mode TLSMode, names ...string) func(*member, *Config) {
	return func(m *member, cfg *Config) {
		cfg.Listener, m.address = w.listen(t, "")
		if names == nil {
			names = []string{hostOfAddress(m.address)}
		}
		cfg.TLS = certified(t, ca, mode, testca.Spec{Hosts: names})
	}
}

// Members of neighboring modes connect in both directions, others exactly if what one dials is what
// the other accepts.
func TestTLSMode_Pairs(t *testing.T) {
	ca := testca.New(t, "members")
	for a := TLSOff; a <= TLSRequired; a++ {
		for b := TLSOff; b <= TLSRequired; b++ {
			w := &world{}
			x, y := w.start(t, 1, w.secured(t, ca, a)), w.start(t, 2, w.secured(t, ca, b))
			connects := func(from, to TLSMode) bool {
				return from.dials() && to != TLSOff || !from.dials() && to != TLSRequired
			}
			both := connects(a, b) && connects(b, a)
			if near := a-b < 2 && b-a < 2; near && !both {
				t.Errorf("%v and %v do not connect", a, b)
			}
			if !both {
				if near := a.dials() != b.dials(); !near {
					t.Errorf("%v and %v", a, b)
				}
				x.SetPeers(map[uint64]string{2: y.address})
				y.SetPeers(map[uint64]string{1: x.address})
				for _, c := range []struct {
					from, to         *member
					fromMode, toMode TLSMode
				}{{x, y, a, b}, {y, x, b, a}} {
					if connects(c.fromMode, c.toMode) {
						continue
					}
					c.from.await(c.to.id, "down")
					want := "accepts no TLS connections"
					if c.toMode == TLSRequired {
						want = "accepts only TLS connections"
					}
					if err := c.from.status(c.to.id).LastError; err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%v to %v: %v", c.fromMode, c.toMode, err)
					}
				}
				continue
			}
			know(x, y)
			x.Send(2, []byte("hello"))
			y.expect("1: hello")
			for _, m := range []struct {
				*member
				mode TLSMode
			}{{x, a}, {y, b}} {
				want := ""
				if m.mode.dials() {
					want = "TLS 1.3"
				}
				if s := m.status(3 - m.id); s.TLS != want {
					t.Errorf("%v and %v: %+v", a, b, s)
				}
			}
		}
	}
}

// Frames and checkpoints pass through TLS, and the tests of plain connections of long frames hold.
func TestTLS_LongFrames(t *testing.T) {
	ca := testca.New(t, "members")
	everywhere(t, func(t *testing.T, w *world) {
		a, b := w.start(t, 1, w.secured(t, ca, TLSRequired)), w.start(t, 2, w.secured(t, ca, TLSRequired))
		know(a, b)
		for _, n := range []int{0, 1, 16 << 10, bufferBytes, 3 << 20} {
			text := strings.Repeat("x", n)
			for !a.Send(2, []byte(text)) {
				t.Fatal("not sent")
			}
			a.Flush(2)
			b.expect("1: " + text)
		}
		for id, s := range map[uint64]Status{2: a.status(2), 1: b.status(1)} {
			if s.ID != id || s.TLS != "TLS 1.3" || s.IncomingTLS != "TLS 1.3" {
				t.Errorf("%+v", s)
			}
		}
	})
}

// The URI of server 0 has its number, and no certificate names the id.
func TestMemberURI_Zero(t *testing.T) {
	other := &x509.Certificate{URIs: []*url.URL{{Scheme: uriScheme, Host: "f", Path: "/1"}}}
	for ensemble, want := range map[string]string{"e": "gozkd://e/0", "": "gozkd://0"} {
		if err := (&TLS{Ensemble: ensemble}).CheckOwn(other, memberid.Zero, ""); err == nil || !strings.HasSuffix(err.Error(), "it must name "+want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for text, want := range map[string]uint64{"gozkd://0": memberid.Zero, "gozkd://e/0": memberid.Zero, "gozkd://1": 1, "gozkd://255": 0, "gozkd://e/-1": 0} {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, id, err := parseMemberURI(u); id != want || (err == nil) != (want != 0) {
			t.Errorf("%s names member %d, %v, want %d", text, id, err, want)
		}
	}
}

// T5: a certificate that is not the member's is refused by both sides, and the side that refuses
// says why.
func TestT5_Certificates(t *testing.T) {
	ca, foreign := testca.New(t, "members"), testca.New(t, "others")
	good := func(names ...string) func(*testing.T) TLS {
		return func(t *testing.T) TLS { return certified(t, ca, TLSRequired, testca.Spec{Hosts: names}) }
	}
	for _, c := range []struct {
		name   string
		tls    func(t *testing.T) TLS // of member 2
		change func(cfg *TLS)         // of member 1
		says   string                 // member 1; empty: accepted
	}{
		{name: "host", tls: good("127.0.0.1")},
		{name: "host and id", tls: good("127.0.0.1", "gozkd://2")},
		{name: "host and ids", tls: good("127.0.0.1", "gozkd://1", "gozkd://e/2")},
		{name: "ensemble", tls: good("127.0.0.1", "gozkd://e/2"), change: func(cfg *TLS) { cfg.Ensemble = "e" }},
		{name: "another ensemble", tls: good("127.0.0.1", "gozkd://f/2"), change: func(cfg *TLS) { cfg.Ensemble = "e" }, says: `names gozkd://f/2: it must name gozkd://e/2`},
		{name: "another host", tls: good("zk2.example"), says: `is for "zk2.example", and its server line on member 1 names 127.0.0.1`},
		{name: "another host, not verified", tls: good("zk2.example"), change: func(cfg *TLS) { cfg.AnyHost = true }},
		{name: "another id", tls: good("127.0.0.1", "gozkd://3"), says: "names gozkd://3: it must name gozkd://2"},
		{name: "another id, any host", tls: good("zk2.example", "gozkd://3"), change: func(cfg *TLS) { cfg.AnyHost = true }, says: "names gozkd://3: it must name gozkd://2"},
		{name: "no id", tls: good("127.0.0.1", "gozkd://two"), says: `"gozkd://two" is not gozkd://ENSEMBLE/ID`},
		{name: "CN", tls: func(t *testing.T) TLS { return certified(t, ca, TLSRequired, testca.Spec{CN: "127.0.0.1"}) }},
		{name: "another CN", tls: func(t *testing.T) TLS { return certified(t, ca, TLSRequired, testca.Spec{CN: "zk2"}) }, says: `is for "CN=zk2"`},
		{name: "foreign", tls: func(t *testing.T) TLS {
			c := foreign.Issue(t, testca.Spec{Hosts: []string{"127.0.0.1"}})
			cfg := TLS{Mode: TLSRequired, Server: c.Server(), Client: chainOnly(ca, c)} // which trusts the members
			cfg.Server.ClientCAs = ca.Pool()
			return cfg
		}, says: "certificate of an unknown authority"},
		{name: "expired", tls: func(t *testing.T) TLS {
			return certified(t, ca, TLSRequired, testca.Spec{Hosts: []string{"127.0.0.1"}, NotAfter: time.Now().Add(-time.Hour)})
		}, says: "certificate expired"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{}
			a := w.start(t, 1, w.secured(t, ca, TLSRequired), func(_ *member, cfg *Config) {
				if c.change != nil {
					c.change(&cfg.TLS)
				}
			})
			b := w.start(t, 2, func(_ *member, cfg *Config) { cfg.TLS = c.tls(t) })
			if c.says == "" {
				know(a, b)
				return
			}
			a.SetPeers(map[uint64]string{2: b.address})
			a.await(2, "down") // the dialing side
			if err := a.status(2).LastError; err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the dialing side: %v", err)
			}
			b.SetPeers(map[uint64]string{1: a.address})
			b.await(1, "down")
			eventually(t, "the accepting side logs the reason", func() bool { return a.log.Count(strings.ReplaceAll(c.says, `"`, `\"`)) >= 2 })
			if len(a.frames)+len(b.frames) > 0 || a.status(2).Incoming || b.status(1).Connected {
				t.Error("they are connected")
			}
			if a.Refused()["tls"]+a.Refused()["certificate"] == 0 {
				t.Errorf("not counted: %v", a.Refused())
			}
		})
	}
}

// T5: a certificate whose URI names the member proves who calls, and the member need not be asked.
// A certificate for the host alone does not.
func TestT5_AskedUnlessTheCertificateNamesTheMember(t *testing.T) {
	ca := testca.New(t, "members")
	inBubble(t, func(t *testing.T, w *world) {
		a := w.start(t, 1, w.secured(t, ca, TLSRequired), func(_ *member, cfg *Config) {
			cfg.Dial, cfg.Peers = w.dialHanging, map[uint64]string{2: hanging, 3: hanging}
		})
		for names, want := range map[string]uint32{"hanging gozkd://2": kindAccepted, "hanging": kindRefused, "hanging gozkd://3": kindRefused} {
			c := ca.Issue(t, testca.Spec{Hosts: strings.Fields(names)})
			s := w.call(t, a.address)
			s = newStranger(t, tls.Client(s.Conn, c.Client(a.address)))
			if answer := s.exchangeGreetings(kindFrames, 2, 1); answer.kind != want {
				t.Errorf("%s: answer is %d %q", names, answer.kind, answer.contents)
			}
			_ = s.NetConn().Close()
			synctest.Wait()
		}
	})
}

// P8: with TLS, whoever relays the messages of the hello can't pass as a member to a member, even
// with a good certificate: the proof is bound to the connection.
func TestP8_RelayWithTLS(t *testing.T) {
	ca := testca.New(t, "members")
	inBubble(t, func(t *testing.T, w *world) {
		change := func(_ *member, cfg *Config) { cfg.Secret, cfg.TLS.AnyHost = []byte(secretA), true }
		a := w.start(t, 1, w.secured(t, ca, TLSRequired), change)
		b := w.start(t, 2, w.secured(t, ca, TLSRequired), change)
		l, relay := w.listen(t, "")
		evil := certified(t, ca, TLSRequired, testca.Spec{Hosts: []string{"evil"}})
		done := make(chan struct{})
		// Stopped by closing l, awaited below.
		go func() {
			defer close(done)
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				caller := newStranger(t, tls.Server(conn, evil.Server))
				hello := caller.answer()
				called := newStranger(t, tls.Client(w.call(t, b.address).Conn, evil.Client("any")))
				called.say(hello.append(nil))
				question := called.answer()
				caller.say(question.append(nil))
				reply := caller.answer()
				called.say(reply.append(nil))
				answer := called.answer()
				if answer.kind != kindRefused {
					t.Errorf("answer is %d %q", answer.kind, answer.contents)
				}
				_, _ = caller.Write(answer.append(nil)) // the caller may be gone
				_, _ = caller.NetConn().Close(), called.NetConn().Close()
			}
		}()
		a.SetPeers(map[uint64]string{2: relay})
		a.await(2, "down")
		if got := b.Refused()["wrong_secret"]; got == 0 {
			t.Errorf("refused: %v", b.Refused())
		}
		a.SetPeers(map[uint64]string{2: b.address})
		a.await(2, "up")
		_ = l.Close()
		<-done
	})
}

// NetConn returns what TLS runs on.
func (s *stranger) NetConn() interface{ Close() error } { return s.Conn.(*tls.Conn).NetConn() }

// SetTLS: members go from plain connections to TLS and back, each for itself and step by step. Each
// connection is made again once, all others stay, and frames pass after each step.
func TestSetTLS_Steps(t *testing.T) {
	ca := testca.New(t, "members")
	inBubble(t, func(t *testing.T, w *world) {
		members := []*member{w.start(t, 1, w.secured(t, ca, TLSOff)), w.start(t, 2, w.secured(t, ca, TLSOff)), w.start(t, 3, w.secured(t, ca, TLSOff))}
		know(members...)
		step := func(mode TLSMode, downs int, version string) {
			for _, m := range members {
				next := m.Network.cfg.TLS
				next.Mode = mode
				if err := m.SetTLS(next); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				for _, o := range members {
					for _, p := range members {
						if p == o {
							continue
						}
						var got int
						for len(o.statesOf(p.id)) > 0 {
							if <-o.statesOf(p.id) == "down" {
								got++
							}
						}
						if want := downs; o != m && got != 0 || o == m && got != want {
							t.Errorf("%v on %d: the connection from %d to %d was down %d times", mode, m.id, o.id, p.id, got)
						}
						text := fmt.Sprintf("%v %d", mode, m.id)
						o.Send(p.id, []byte(text))
						p.expect(fmt.Sprintf("%d: %s", o.id, text))
					}
				}
			}
			for _, m := range members {
				for _, s := range m.Status() {
					if !s.Connected || !s.Incoming || s.TLS != version || s.IncomingTLS != version {
						t.Errorf("%v: %+v", mode, s)
					}
				}
			}
		}
		step(TLSAccepted, 0, "")
		step(TLSDialed, 1, "TLS 1.3")
		step(TLSRequired, 0, "TLS 1.3")
		step(TLSDialed, 0, "TLS 1.3")
		step(TLSAccepted, 1, "")
		step(TLSOff, 0, "")
	})
}

// SetTLS: a step that comes too early leaves the connections alone, until the others have followed.
func TestSetTLS_TooEarly(t *testing.T) {
	ca := testca.New(t, "members")
	inBubble(t, func(t *testing.T, w *world) {
		a, b := w.start(t, 1, w.secured(t, ca, TLSOff)), w.start(t, 2, w.secured(t, ca, TLSOff))
		know(a, b)
		set := func(m *member, mode TLSMode) {
			next := m.cfg.TLS
			next.Mode = mode
			if err := m.SetTLS(next); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		set(a, TLSDialed)
		if n := len(a.statesOf(2)) + len(b.statesOf(1)); n != 0 || !a.status(2).Connected || a.status(2).TLS != "" {
			t.Errorf("%d changes: %+v", n, a.status(2))
		}
		if n := a.log.Count("trial connection"); n < 1 || n > 3 { // pipes fail in several ways
			t.Errorf("%d lines, want a few:\n%s", n, a.log)
		}
		set(b, TLSAccepted)
		if s := a.status(2); s.TLS == "" || !s.Connected {
			t.Errorf("%+v", s)
		}
		if n := len(b.statesOf(1)); n != 0 {
			t.Errorf("%d changes of b's connection", n)
		}
	})
}

// P5: a handshake that does not end is soon made again, because a record may have been lost or
// damaged; the caller waits longer each time, for an acceptor that is slow.
func TestP5_HandshakeIsMadeAgain(t *testing.T) {
	ca := testca.New(t, "members")
	inBubble(t, func(t *testing.T, w *world) {
		address, calls := w.receptionist(t)
		a := w.start(t, 1, w.secured(t, ca, TLSRequired))
		began := time.Now()
		a.SetPeers(map[uint64]string{2: address})
		<-calls // and nothing is said
		s := <-calls
		if took := time.Since(began); took < helloTimeout || took > helloTimeout+firstWait {
			t.Errorf("made again after %v", took)
		}
		time.Sleep(2*helloTimeout - time.Millisecond)
		newStranger(t, tls.Server(s.Conn, ca.Issue(t, testca.Spec{Hosts: []string{hostOfAddress(address)}}).Server())).accepted()
		a.await(2, "down")
		a.await(2, "up")
		if s := a.status(2); !s.Connected || s.TLS != "TLS 1.3" {
			t.Errorf("%+v", s)
		}
	})
}
