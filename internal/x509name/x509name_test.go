package x509name_test

import (
	"bytes"
	"encoding/hex"
	"flag"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gozkd/gozkd/internal/testkit/watchdog"
	"github.com/gozkd/gozkd/internal/x509name"
)

var update = flag.Bool("update", false, "ask Java for the names again: needs java on the path")

func TestMain(m *testing.M) { watchdog.Watch(m).Run() }

const golden = "testdata/names.txt"

// subjects are those of the golden file.
func subjects(t *testing.T) (all [][]byte) {
	one := func(a ...Attr) Name { return Name{a} }
	cn := func(tag int, value string) Name {
		return one(Attr{OID: CN, Tag: tag, Value: value})
	}
	names := []Name{
		{},
		{{{OID: C, Tag: Printable, Value: "DE"}}, {{OID: ST, Value: "Berlin"}}, {{OID: L, Value: "Mitte"}},
			{{OID: O, Value: "Example, Inc."}}, {{OID: OU, Value: "Eng"}}, {{OID: CN, Value: "alice"}}},
		{{{OID: DC, Tag: IA5, Value: "com"}}, {{OID: DC, Tag: IA5, Value: "example"}}, {{OID: UID, Value: "bob"}}},
		{{{OID: O, Value: "Ex"}}, {{OID: CN, Value: "m"}, {OID: UID, Value: "u1"}}},
		{{{OID: UID, Value: "u1"}, {OID: CN, Value: "m"}, {OID: Email, Tag: IA5, Value: "a@b"}}},
		{{{OID: CN, Value: "twice"}, {OID: CN, Value: "again"}}, {{OID: CN, Value: "thrice"}}},
		one(Attr{OID: SerialNumber, Tag: Printable, Value: "42"}), one(Attr{OID: PostalCode, Value: "10115"}),
		one(Attr{OID: Email, Tag: IA5, Value: "b@x.org"}), one(Attr{OID: Email, Value: "b@x.org"}),
		one(Attr{OID: Title, Value: "Dr"}), one(Attr{OID: Street, Value: "Road 1"}),
		one(Attr{OID: []int{1, 3, 6, 1, 4, 1, 99999, 1}, Value: "own"}), one(Attr{OID: []int{2, 999, 3}, Value: "wide"}),
		one(Attr{OID: []int{2, 5, 4, 4}, Value: "surname"}), one(Attr{OID: []int{2, 5, 4, 42}, Value: "given"}),
	}
	for _, tag := range []int{UTF8, Printable, IA5, T61, General, BMP, Universal, Numeric, 4, 26, 3, 2} {
		for _, value := range []string{"x1 y", "", " ", "ü"} {
			names = append(names, cn(tag, value))
		}
	}
	for _, value := range []string{
		"  two before", "two after  ", " \r both \r ", "#begins", "in#side", `,=+<>#;"\`, `\`, "a=b", "a\x00b", "a\tb\nc\x7f", "\rx", "Größe 東京 😀",
		"\xff", "\xc3", "a\xe6\x9d", "\xe6\x9dx", "\xf0\x9f\x98", "\xf0\x9f\x98x", "\xed\xa0\x80", "\xc0\x80", "\xe0\x80\x80", "\xf4\x90\x80\x80", "\xf8\x88\x80\x80\x80", "\xc2 ",
		"\u00a0nbsp\u00a0", "\u2028", "\ufeffbom", "'/?*!@&_",
	} {
		names = append(names, cn(UTF8, value))
		if len(value) < 8 {
			names = append(names, cn(T61, value))
		}
	}
	for _, n := range names {
		all = append(all, n.DER(t))
	}
	return all
}

// Java's names of the subjects are ours. Regenerate the file with
//
//	go test ./internal/x509name -run Golden -update
func TestOf_Golden(t *testing.T) {
	if *update {
		askJava(t)
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		der, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		subject, err := hex.DecodeString(der)
		if err != nil {
			t.Fatal(err)
		}
		n++
		if name == "-" { // Java refuses it, and so may we
			continue
		}
		want, err := hex.DecodeString(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := x509name.Of(subject)
		if got != string(want) || err != nil {
			t.Errorf("%s: %q, %v, want %q", der, got, err, want)
		}
		if x509name.Valid(got) != (got != "") {
			t.Errorf("%q: valid is %t", got, got == "")
		}
	}
	if all := len(subjects(t)); n < 40 || n != all {
		t.Errorf("%s has %d names of %d subjects: run with -update", golden, n, all)
	}
	for _, name := range []string{"a", "a=b", "cn=a", "CN", "CN=a, O=b", "CN=a ,O=b", "CN= a", "O=b/CN=a", "/CN=a", "CN=a,", "CN=a;O=b", `CN="a"`, `CN=a\`, "emailAddress=a", "1.2=a"} {
		if x509name.Valid(name) {
			t.Errorf("%q is valid", name)
		}
	}
}

func askJava(t *testing.T) {
	var in, out bytes.Buffer
	for _, der := range subjects(t) {
		in.WriteString(hex.EncodeToString(der) + "\n")
	}
	java := exec.Command("java", "testdata/Names.java")
	java.Stdin, java.Stdout, java.Stderr = bytes.NewReader(in.Bytes()), &out, os.Stderr
	if err := java.Run(); err != nil {
		t.Fatal(err)
	}
	ders, names := strings.Fields(in.String()), strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(ders) != len(names) {
		t.Fatalf("%d names of %d subjects", len(names), len(ders))
	}
	var text strings.Builder
	for i := range ders {
		text.WriteString(ders[i] + " " + names[i] + "\n")
	}
	if err := os.WriteFile(golden, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// No subject makes a panic, and a name has no bytes that are not UTF-8.
func FuzzOf(f *testing.F) {
	text, err := os.ReadFile(golden)
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		der, _, _ := strings.Cut(line, " ")
		b, err := hex.DecodeString(der)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, der []byte) {
		if name, err := x509name.Of(der); err == nil && strings.ToValidUTF8(name, "") != name {
			t.Errorf("%x: %q", der, name)
		}
	})
}
