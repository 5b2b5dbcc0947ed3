package tlsconf

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/internal/neterr"
	"github.com/gozkd/gozkd/internal/testca"
)

// crl returns a revocation list of an authority in DER, valid from begin to end, which default to
// testca.Begin and testca.End.
func crl(t *testing.T, ca *testca.CA, begin, end time.Time, revoked ...*testca.Cert) []byte {
	t.Helper()
	if begin.IsZero() {
		begin = testca.Begin
	}
	if end.IsZero() {
		end = testca.End
	}
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: begin, NextUpdate: end}
	for _, c := range revoked {
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: c.Leaf.SerialNumber, RevocationTime: begin})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, ca.Leaf, ca.PrivateKey.(crypto.Signer))
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// crlPEM returns a revocation list as PEM.
func crlPEM(der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}) }

func TestCRL_NamesTheRevoked(t *testing.T) {
	ca := testca.New(t, "root")
	bad := ca.Issue(t, testca.Spec{})
	list, err := x509.ParseRevocationList(crl(t, ca, time.Time{}, time.Time{}, bad))
	if err != nil {
		t.Fatal(err)
	}
	if err := list.CheckSignatureFrom(ca.Leaf); err != nil {
		t.Error(err)
	}
	if len(list.RevokedCertificateEntries) != 1 || list.RevokedCertificateEntries[0].SerialNumber.Cmp(bad.Leaf.SerialNumber) != 0 {
		t.Errorf("%v", list.RevokedCertificateEntries)
	}
}

func TestCRL_Refuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := testca.New(t, "root")
		sub := ca.Sub(t, "sub")
		server := ca.Issue(t, testca.Spec{Hosts: []string{"zk"}})
		direct, below, bad := ca.Issue(t, testca.Spec{CN: "direct"}), sub.Issue(t, testca.Spec{CN: "below"}), sub.Issue(t, testca.Spec{CN: "bad"})
		dir := t.TempDir()
		var none time.Time
		testca.WriteFile(t, filepath.Join(dir, "root.pem"), crlPEM(crl(t, ca, none, none)))
		o := options(Server, server.Files(t))
		o.CRL, o.CRLLocation = true, dir
		s := load(t, o)
		run(t, s)
		serves := func(c *testca.Cert, want string) {
			t.Helper()
			if got := neterr.TLSReason(shake(s.Server(), c.Client("zk")).serverErr); got != want {
				t.Errorf("%s: %q, want %q", c.Leaf.Subject, got, want)
			}
		}
		serves(direct, "")
		serves(below, neterr.NoRevocation) // no list of sub
		testca.WriteFile(t, filepath.Join(dir, "sub.crl"), crl(t, sub, none, none, bad))
		later()
		serves(below, "")
		serves(bad, neterr.Revoked)
		testca.WriteFile(t, filepath.Join(dir, "root.pem"), crlPEM(crl(t, ca, none, none, direct, sub.Cert)))
		later()
		serves(direct, neterr.Revoked)
		serves(below, neterr.Revoked) // its issuer is revoked
		testca.WriteFile(t, filepath.Join(dir, "root.pem"), crlPEM(crl(t, ca, none, time.Now().Add(time.Minute))))
		later()
		serves(direct, "")
		time.Sleep(2 * time.Minute)
		serves(direct, neterr.NoRevocation) // out of date
		if err := os.Remove(filepath.Join(dir, "root.pem")); err != nil {
			t.Fatal(err)
		}
		later()
		serves(direct, neterr.NoRevocation)

		// A list that somebody else signed is not taken over.
		failures := s.Stats().Failures
		testca.WriteFile(t, filepath.Join(dir, "root.pem"), crlPEM(crl(t, testca.New(t, "root"), none, none)))
		later()
		serves(direct, neterr.NoRevocation)
		if st := s.Stats(); st.Failures != failures+1 || !strings.Contains(st.LastError.Error(), "signature") {
			t.Errorf("%+v", st)
		}
	})
}

func TestCRL_OfTheServer(t *testing.T) {
	ca := testca.New(t, "root")
	server, client := ca.Issue(t, testca.Spec{Hosts: []string{"zk"}}), ca.Issue(t, testca.Spec{})
	o := options(Client, client.Files(t))
	o.CRL, o.CRLLocation = true, testca.WriteFile(t, filepath.Join(t.TempDir(), "list"), crl(t, ca, time.Time{}, time.Time{}, server))
	if got := neterr.TLSReason(shake(server.Server(), load(t, o).Client("zk")).clientErr); got != neterr.Revoked {
		t.Errorf("%q", got)
	}
}

// TestCRL_Partial checks that a list that does not name all revoked certificates is refused,
// whether its authority has marked it as critical or not.
func TestCRL_Partial(t *testing.T) {
	ca := testca.New(t, "root")
	o := options(Server, ca.Issue(t, testca.Spec{}).Files(t))
	o.CRL, o.CRLLocation = true, filepath.Join(t.TempDir(), "list")
	for name, extension := range map[string]pkix.Extension{
		"delta":           {Id: asn1.ObjectIdentifier{2, 5, 29, 27}, Value: []byte{2, 1, 1}},
		"critical delta":  {Id: asn1.ObjectIdentifier{2, 5, 29, 27}, Value: []byte{2, 1, 1}, Critical: true},
		"only some":       {Id: asn1.ObjectIdentifier{2, 5, 29, 28}, Value: []byte{0x30, 3, 0x82, 1, 0xff}},
		"unknown meaning": {Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Value: []byte{5, 0}, Critical: true},
	} {
		list := &x509.RevocationList{Number: big.NewInt(2), ThisUpdate: testca.Begin, NextUpdate: testca.End, ExtraExtensions: []pkix.Extension{extension}}
		der, err := x509.CreateRevocationList(rand.Reader, list, ca.Leaf, ca.PrivateKey.(crypto.Signer))
		if err != nil {
			t.Fatal(err)
		}
		testca.WriteFile(t, o.CRLLocation, der)
		if _, err := Load(o, hclog.NewNullLogger()); err == nil || !strings.Contains(err.Error(), "partial revocation list") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// versionOneList was made by openssl ca -gencrl without crl_extensions.
const versionOneList = `-----BEGIN X509 CRL-----
MIHaMIGBMAoGCCqGSM49BAMCMCwxEDAOBgNVBAoMB0V4YW1wbGUxGDAWBgNVBAMM
D1RyaWFsIGF1dGhvcml0eRcNMjYxMTIyMjI0ODAwWhcNMjYxMjIyMjI0ODAwWjAn
MCUCFDaJL/M18Tg+qk/mH5xeNK+Aq/VyFw0yNjExMjIyMjMwMThaMAoGCCqGSM49
BAMCA0gAMEUCIGBT7XSzNvnJKqxbuJJUhh6MafJaerGorhHQz44KARr3AiEAgxtn
srufWfEljgEMba2stIbMou9PkpbT1g2ImUD9S9c=
-----END X509 CRL-----
`

func TestCRL_BadSource(t *testing.T) {
	ca := testca.New(t, "root")
	f := ca.Issue(t, testca.Spec{}).Files(t)
	for want, location := range map[string]string{
		"no such file":             filepath.Join(t.TempDir(), "missing"),
		"holds no revocation list": t.TempDir(),
		"not a revocation list":    golden("keytool.p12"),
		"it holds no revocation":   golden("ca.pem"),
		"crl_extensions":           testca.WriteFile(t, filepath.Join(t.TempDir(), "v1"), []byte(versionOneList)),
	} {
		o := options(Server, f)
		o.CRL, o.CRLLocation = true, location
		if _, err := Load(o, hclog.NewNullLogger()); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "gozkd.ssl.crlLocation") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func FuzzCRL(f *testing.F) {
	f.Add([]byte("-----BEGIN X509 CRL-----\nMAA=\n-----END X509 CRL-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		in := &input{data: map[string][]byte{"f": data}}
		lists, err := loadCRLs("key", []string{"f"}, in, nil)
		if err == nil && len(lists) == 0 {
			t.Error("neither lists nor an error")
		}
	})
}
