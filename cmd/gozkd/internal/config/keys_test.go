package config

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestKeys_Table: every row can be looked up by its name and aliases, has valid values, and has a
// reason if it has no effect.
func TestKeys_Table(t *testing.T) {
	seen := make(map[string]bool)
	for _, k := range keys {
		for _, name := range append([]string{k.name}, k.aliases...) {
			if seen[name] {
				t.Errorf("%s stands in the table twice", name)
			}
			seen[name] = true
			written := strings.Replace(name, "*", "x", 1)
			for _, w := range []string{written, "zookeeper." + written} {
				if got, _, ok := lookup(w); !ok || got.name != k.name {
					t.Errorf("%s finds row %q", w, got.name)
				}
			}
		}
		if k.reload && k.field == nil {
			t.Errorf("%s reloads, but has no field", k.name)
		}
		if k.note == "" || k.kind.parse == nil || k.kind.allowed == "" {
			t.Errorf("%s: note %q, allowed %q", k.name, k.note, k.kind.allowed)
		}
		for _, v := range k.fine {
			if canonical, ok := k.kind.parse(v); !ok || canonical != v {
				t.Errorf("%s: %q is called fine, but is not a canonical value", k.name, v)
			}
		}
		if k.status == works && len(k.fine) > 0 {
			t.Errorf("%s works, so no value needs to be called fine", k.name)
		}
		if k.status != works && k.field != nil && k.status != harmless {
			t.Errorf("%s is %s, but has a field", k.name, k.status)
		}
	}
}

// rowOf returns the row of a key, with its field in c.
func rowOf(c *Config, name string) *key {
	rows := table(c)
	return &rows[slices.IndexFunc(rows, func(k key) bool { return k.name == name })]
}

// values lists valid and invalid values by kind.
var values = map[string]struct{ good, bad []string }{
	strict.allowed:            {[]string{"true", "false", "TRUE"}, []string{"", "yes", "1", "true false"}},
	onlyYes.allowed:           {[]string{"yes", "no", "NO", "", "true"}, nil},
	onlyTrue.allowed:          {[]string{"true", "false", "TRUE", "", "yes"}, nil},
	text.allowed:              {[]string{"a", "a b"}, []string{""}},
	nameList.allowed:          {[]string{"", "a", "a, b"}, nil},
	anything.allowed:          {[]string{"", "a"}, nil},
	znodeList.allowed:         {[]string{"/", "/a", "/a, /b/c,"}, []string{"", " , ", "a", "/a,b", "*", "/a//b", "/a/../b"}},
	password.allowed:          {[]string{"", "a"}, nil},
	protocol.allowed:          {[]string{"TLS", "TLSv1.2", "tlsv1.3"}, []string{"", "TLSv1.1", "SSLv3", "TLSv1.4", "TLSv1.2,TLSv1.3"}},
	protocols.allowed:         {[]string{"TLSv1.2", "TLSv1.3, TLSv1.2,"}, []string{"", ",", "TLSv1.1", "TLSv1.2,SSLv3", "TLSv1.2,x"}},
	suites.allowed:            {[]string{"TLS_AES_128_GCM_SHA256", "A, B,"}, []string{"", " , "}},
	roles.allowed:             {[]string{"admin=sasl:a; read=x509:CN=b"}, []string{"", "x", "read=digest:a:secret!"}},
	browserHosts.allowed:      {[]string{"zk1.example.org, .example.org,", "10.0.0.1"}, []string{"", ",", "https://a", "a:8080", "*.example.org", "a/b"}},
	"the name of a header":    {[]string{"X-User"}, []string{"", "X-User:", "X User"}},
	httpURL.allowed:           {[]string{"http://127.0.0.1:1/a", "https://h/scale"}, []string{"", "h", "ftp://h", "http://", "http://h:x", "http://a b"}},
	"the name ENSEMBLE alone": {[]string{"trial"}, []string{"", "a/b", "gozkd://trial", "a:b", "a@b", "a b", "gozkd://trial/1"}},
	shortNames.allowed:        {[]string{"DEFAULT", "RULE:[1:$1] DEFAULT"}, []string{"", "x", "RULE:[1:$2]"}},
	certificateNames.allowed:  {[]string{"CN=a", "CN=a; O=b,C=DE"}, []string{""}},
	wordList.allowed:          {[]string{"*", "stat", "stat, ruok,"}, []string{"", " , "}},
	whitelist.allowed:         {[]string{"", "*", "stat, ruok,"}, []string{" , "}},
	bound.allowed:             {[]string{"-2147483648", "-1", "0", "2147483647"}, []string{"", "x", "2147483648", "-2147483649"}},
	networks.allowed:          {[]string{"10.0.0.1", "10.0.0.0/8, ::1,"}, []string{"", ",", "*", "10.0.0.0/33", "proxy"}},
	host.allowed:              {[]string{"localhost", "127.0.0.1", "::1", "[::1]", "fe80::1%eth0", "zk_1.example.org."}, []string{"", "a:1", "[a", "[a]", "a b", "1.2.3.4/8", "a,b", ".a", "http://a"}},
	urlPath.allowed:           {[]string{"/commands", "/a/b", "/c/"}, []string{"", "/", "commands", "/a?b"}},
	sizeOrPercent.allowed:     {[]string{"0", "0x400", "2147483647", "1%", "60%", "100%"}, []string{"", "%", "x", "-1", "2147483648", "0%", "101%", "1.5%", "7 %"}},
	fraction.allowed:          {[]string{"0", "1", "0.02", "1e-3"}, []string{"", "x", "-0.1", "1.01", "NaN", "1,5"}},
	archiveURL.allowed:        {[]string{"file:///backup", "s3://bucket/a/b?region=eu&endpoint=http://h:1"}, []string{"", "/backup", "http://h/b", "s3://key:secret@b/", "s3://b?x=1"}},
	digestID.allowed:          {[]string{"super:xQJmxLMiHGwaqBvst5y6rkB6HQs=", ":xQJm"}, []string{"", "super", "super:", "super:secret!"}},
	digestAlg.allowed:         {[]string{"SHA1", "sha-1", "SHA-256", "sha3-512"}, []string{"", "RipeMD160"}},
}

// TestKeys_Values sets every key of zoo.cfg to valid and invalid values of its kind.
func TestKeys_Values(t *testing.T) {
	for _, k := range keys {
		if k.name == "dynamicConfigFile" || k.name == serverLines || k.name == "standaloneEnabled" || k.name == "datadir.autocreate" || k.name == "gozkd.peer.secretFile" || opensTLS(k.name) || k.name == jaasFile || k.name == saslUserFile || k.name == enforceEnabled { // have tests of their own
			continue
		}
		name := strings.Replace(k.name, "*", "x", 1)
		v, ok := values[k.kind.allowed]
		if !ok {
			v.good, v.bad = numbers(t, k.kind.allowed)
			if v.good == nil {
				v.good, v.bad = strings.Split(k.kind.allowed, ", "), []string{"", "else"}
			}
		}
		if k.kind.lenient {
			v.good, v.bad = slices.Concat(v.good, v.bad), nil
		}
		for _, value := range v.good {
			canonical, ok := k.kind.parse(trim(value))
			if !ok {
				t.Errorf("%s=%s is not accepted", name, value)
				continue
			}
			r := newResolver()
			r.set(setting{key: name, value: trim(value), from: Origin{Source: "zoo.cfg", Line: 1, layer: fromFile}})
			c := r.resolve(false)
			fine := slices.Contains(k.fine, canonical)
			r.problems = slices.DeleteFunc(r.problems, func(p Problem) bool { return strings.Contains(p.What, "more than maxSessionTimeout") })
			if refusedHere := k.status == refused && !fine; (len(r.ofGroups) > 0) != refusedHere || len(r.problems) > 0 {
				t.Errorf("%s=%s: problems %v %v", name, value, r.problems, r.ofGroups)
			}
			if k.field == nil || k.name == "minSessionTimeout" || k.name == "maxSessionTimeout" {
				continue // without a field, or with a computed default
			}
			if got := rowOf(&c, k.name).text().get(); got != canonical {
				t.Errorf("%s=%s became %s, want %s", name, value, got, canonical)
			}
		}
		for _, value := range v.bad {
			r := newResolver()
			r.set(setting{key: name, value: trim(value), from: Origin{Source: "zoo.cfg", Line: 7, layer: fromFile}})
			c := r.resolve(false)
			if k.ignored(trim(value)) {
				without := newResolver()
				plain := without.resolve(false)
				if len(r.problems) > len(without.problems) || len(r.warnings) == 0 || !strings.Contains(r.warnings[0], "which has no effect, as in ZooKeeper") || k.field != nil && rowOf(&c, k.name).text().get() != rowOf(&plain, k.name).text().get() {
					t.Errorf("%s=%s: problems %v, warnings %v", name, value, r.problems, r.warnings)
				}
				continue
			}
			if k.kind.nearest != nil {
				if nearest, ok := k.kind.nearest(trim(value)); ok {
					if len(r.warnings) == 0 || !strings.Contains(r.warnings[0], name+": is "+cmp.Or(trim(value), "empty")+"; "+nearest+" is used") || k.field != nil && rowOf(&c, k.name).text().get() != nearest {
						t.Errorf("%s=%s became %v, want %s; warnings %v", name, value, c, nearest, r.warnings)
					}
					continue
				}
			}
			r.problems = append(r.problems, r.ofGroups...) // as if TLS were served
			if len(r.problems) == 0 {
				t.Errorf("%s=%s was accepted", name, value)
				continue
			}
			for _, want := range []string{"zoo.cfg:7: " + name + ": is ", k.kind.allowed} {
				if got := r.problems[0].String(); !strings.Contains(got, want) {
					t.Errorf("%s=%s: %q does not say %q", name, value, got, want)
				}
			}
		}
	}
}

// anyText are keys, besides those of files, that may be any text, as configuration.md says, and
// keys that another test of this package sets to wrong values.
var anyText = []string{
	superUsers, "letAnySaslUserDoX", "ensembleAuthName", "SASLAuthenticationProvider.superPassword", "ssl.keyStore.password",
	"ssl.trustStore.password", "X509AuthenticationProvider.superUser", serverLines, enforceSchemes, authProviders, jaasSection,
}

// TestKeys_AnyText: a value of the wrong shape is found when the configuration is read, and not at
// its first use. TestCheckConfig_EachFile of cmd/gozkd has the keys of files.
func TestKeys_AnyText(t *testing.T) {
	files := regexp.MustCompile(`^((PEM |JAAS )?(file|directory|place)|password) `)
	for _, k := range keys {
		all := []string{text.allowed, nameList.allowed, anything.allowed, password.allowed}
		if k.status == works && slices.Contains(all, k.kind.allowed) && !slices.Contains(anyText, k.name) && !files.MatchString(k.note) {
			t.Errorf("%s (%s) may be any text: give it a kind that refuses values that cannot work, or say in configuration.md that it is free", k.name, k.note)
		}
	}
}

// opensTLS reports whether a key needs key stores, which have tests of their own.
func opensTLS(name string) bool {
	return strings.HasPrefix(name, "secureClientPort") || slices.Contains([]string{
		"client.portUnification", "admin.portUnification", "admin.forceHttps", "admin.needClientAuth", "metricsProvider.httpsPort",
	}, name)
}

// numbers returns both ends of the allowed range, values just outside, and values that are not
// numbers; nil if allowed is not a range.
func numbers(t *testing.T, allowed string) (good, bad []string) {
	t.Helper()
	var low, high int64
	if n, _ := fmt.Sscanf(allowed, "a whole number from %d to %d", &low, &high); n != 2 {
		return nil, nil
	}
	good = []string{fmt.Sprint(low), fmt.Sprint(high)}
	bad = []string{"", "x", "1.5", "1 2", "99999999999999999999", "--1"}
	if low-1 < low {
		bad = append(bad, fmt.Sprint(low-1))
	}
	if high+1 > high {
		bad = append(bad, fmt.Sprint(high+1))
	}
	if strings.Contains(allowed, "hexadecimal") {
		good = append(good, fmt.Sprintf("%#x", high), "0"+fmt.Sprintf("%o", high), "#7fff")
		bad = append(bad, "0x", "0x-1", "08", "0xg")
		good = slices.DeleteFunc(good, func(v string) bool { n, err := decode(v); return err != nil || n > high })
	}
	return good, bad
}

// TestConfig_ReadsBack: a printed Config reads back as the same Config.
func TestConfig_ReadsBack(t *testing.T) {
	dir := t.TempDir()
	anyText := rapid.StringMatching(`[a-zA-Z0-9/\\:=#! ü\t\n$%{}]*`)
	rapid.Check(t, func(rt *rapid.T) {
		r := newResolver()
		for _, k := range keys {
			tls := k.secret || opensTLS(k.name) // has tests of its own
			files := k.name == jaasFile || k.name == saslUserFile || strings.HasPrefix(k.name, "enforce.auth.")
			if k.field == nil || k.name == "datadir.autocreate" || tls || files || !rapid.Bool().Draw(rt, k.name+" is set") {
				continue
			}
			value := drawValue(rt, k, anyText)
			r.set(setting{key: k.name, value: trim(value), from: Origin{Source: "rapid", layer: fromFlags}})
		}
		for id := range uint64(rapid.IntRange(0, 5).Draw(rt, "servers")) {
			line := fmt.Sprintf("h%d:2888:3888:%s", id+1, rapid.SampledFrom([]string{"participant", "participant;10.0.0.1:5", "observer;6"}).Draw(rt, "line"))
			r.set(setting{key: fmt.Sprintf("server.%d", id+1), value: line, from: Origin{Source: "rapid", layer: fromFile}})
		}
		if rapid.Bool().Draw(rt, "likely myid") {
			r.set(setting{key: "myid", value: "1", from: Origin{Source: "rapid", layer: fromFlags}})
		}
		c := r.resolve(false)
		if len(r.problems) > 0 {
			rt.Skip("not a valid configuration")
		}
		file := filepath.Join(dir, "zoo.cfg")
		if err := os.WriteFile(file, []byte(c.String()), 0o644); err != nil {
			rt.Fatal(err)
		}
		inv, err := load([]string{file}, func(string) string { return "" }, nil)
		if err != nil {
			rt.Fatalf("%v\nin\n%s", err, c)
		}
		inv.Config.Server.ListenFixed = c.Server.ListenFixed // says where a setting stood
		if fmt.Sprintf("%#v", inv.Config) != fmt.Sprintf("%#v", c) {
			rt.Fatalf("read back\n%#v\nwant\n%#v\nfrom\n%s", inv.Config, c, c)
		}
	})
}

func drawValue(rt *rapid.T, k key, anyText *rapid.Generator[string]) string {
	if v, ok := values[k.kind.allowed]; ok && k.kind.allowed != text.allowed {
		return rapid.SampledFrom(v.good).Draw(rt, k.name)
	}
	var low, high int64
	if n, _ := fmt.Sscanf(k.kind.allowed, "a whole number from %d to %d", &low, &high); n == 2 {
		return fmt.Sprint(rapid.Int64Range(low, high).Draw(rt, k.name))
	}
	words := strings.Split(k.kind.allowed, ", ")
	if !slices.ContainsFunc(words, func(w string) bool { _, ok := k.kind.parse(w); return !ok }) && k.kind.allowed != text.allowed {
		return rapid.SampledFrom(words).Draw(rt, k.name)
	}
	if v := anyText.Draw(rt, k.name); trim(v) != "" || k.kind.allowed != text.allowed {
		return v
	}
	return "x"
}

// FuzzLoad: any zoo.cfg gives a Config that reads back, or problems with their places.
func FuzzLoad(f *testing.F) {
	f.Add("dataDir=/d\ntickTime=2000\nserver.1=a:1:2;3\n4lw.commands.whitelist=*\n")
	f.Add("dataDir=/d\nserver.1=a:1:2;3\nserver.2=[::1]:1:2:observer\nserver.3=b:1\nmyid=2\nclientPortAddress=::\n")
	f.Add("dataDir=/d\nserver.1=a:1:2;3\nmyid=1\nstandaloneEnabled=false\nquorumListenOnAllIPs=true\ninitLimit=2\n")
	f.Add("jute.maxbuffer=0x10000\nforceSync=no\nadmin.enableServer=true\nx=y")
	f.Fuzz(func(t *testing.T, zooCfg string) {
		if strings.Contains(zooCfg, "dynamicConfigFile") || strings.Contains(zooCfg, "\\") {
			t.Skip("could name any file of this machine")
		}
		load := func(text string) (Config, error) {
			r := newResolver()
			r.hasFile = true
			props, problems := readProperties("zoo.cfg", []byte(text))
			r.problems = problems
			for _, p := range props {
				if strings.HasSuffix(p.key, "dataDir") {
					p.value = "/nonexistent/" + strings.ToValidUTF8(p.value, "")
				}
				r.set(setting{key: p.key, value: p.value, from: Origin{Source: "zoo.cfg", Line: p.line, layer: fromFile}})
			}
			c := r.resolve(false)
			if len(r.problems) > 0 {
				return c, &Error{Problems: r.problems}
			}
			return c, nil
		}
		c, err := load(zooCfg)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "zoo.cfg:") && !strings.HasPrefix(line, "dataDir: ") && !strings.HasPrefix(line, "/nonexistent/") {
					t.Errorf("a problem without a place: %s", line)
				}
			}
			return
		}
		text := strings.Replace(c.String(), "dataDir=/nonexistent/", "dataDir=", 1)
		if again, err := load(text); err != nil || fmt.Sprintf("%#v", again) != fmt.Sprintf("%#v", c) {
			t.Errorf("read back\n%#v\n%v\nwant\n%#v", again, err, c)
		}
	})
}

var rewrite = flag.Bool("rewrite", false, "write the lists of docs/reference/configuration.md and docs/guide/container.md")

// TestDocumentation: docs/reference/configuration.md contains the tables.
func TestDocumentation(t *testing.T) {
	const path = "../../../../docs/reference/configuration.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := replaceBetween(t, string(page), "keys", keyTable())
	keepPage(t, path, string(page), want)
}

// keepPage fails if a page is out of date, or rewrites it.
func keepPage(t *testing.T, path, page, want string) {
	t.Helper()
	if want == page {
		return
	}
	if !*rewrite {
		t.Fatalf("%s is out of date: go test ./cmd/gozkd/internal/config -run Documentation -rewrite", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// obvious matches values that the list of keys leaves out: an error about a wrong value names them.
var obvious = regexp.MustCompile(`^(-?\d+( or more| to \d+)?|a (whole )?number.*|boolean|yes, no|text|host|list|need, want, none|any password|anything|DefaultMetricsProvider, .*)$`)

// keyTable returns a list in Markdown of the supported keys, and one of those of which there is
// something to say among all others. Keys of which everything else is equal share an item.
func keyTable() string {
	cell := strings.NewReplacer("*", `\*`, "a whole number from ", "", " to 2147483647", " or more",
		"any text except the empty one", "text", "a host name or an IP address, without a port", "host",
		"true, false", "boolean", ", decimal, 0x hexadecimal or 0 octal", "", ", separated by commas", "",
		whitelist.allowed, "list", shortNames.allowed, "rules", "words separated by commas, or *", "list", "names separated by commas", "list",
		strings.TrimSuffix(defaultProvider, "DefaultMetricsProvider"), "").Replace
	var working, others []string // rows without their keys
	names := make(map[string][]string)
	for _, k := range keys {
		row, rows := "", &others
		switch note := k.note; {
		case k.status == works:
			if k.def != "false" && k.def != "0" {
				row = cell(k.def)
			}
			if allowed := cell(k.kind.allowed); !obvious.MatchString(allowed) && row != "" {
				row = allowed + "; default " + row
			} else if !obvious.MatchString(allowed) {
				row = allowed
			}
			if row != "" {
				row = " (" + row + ")"
			}
			if k.reload {
				row = " ↻" + row
			}
			row, rows = row+": "+note, &working
		case k.status == harmless && note == javaPeers:
			continue
		case k.status == harmless && len(k.fine) == 0:
			row = ": " + note
		case len(k.fine) > 0:
			row = fmt.Sprintf(": unless `%s`: %s", strings.Join(k.fine, "`, `"), strings.TrimPrefix(string(k.status)+": "+note, "harmless: "))
		case k.status == later:
			row = ": a warning: " + note
		default:
			row = fmt.Sprintf(": %s: %s", k.status, note)
		}
		if names[row] == nil {
			*rows = append(*rows, row)
		}
		names[row] = append(names[row], append([]string{k.name}, k.aliases...)...)
	}
	var b strings.Builder
	write := func(rows []string) {
		for _, row := range rows {
			b.WriteString(item(cut(names[row]) + row))
		}
	}
	write(working)
	b.WriteString("\nKeys without effect. A key that is listed as refused prevents the start if TLS that it configures is\nserved.\n" +
		"ZooKeeper's other keys are accepted: they concern details of the Java server.\n\n")
	write(others)
	return b.String()
}

// cut returns names of keys for an item, in which `ssl.quorum.…` stands for the names with this
// prefix that end like a name with the prefix ssl.
func cut(names []string) string {
	var whole, prefixes []string
	for _, name := range names {
		prefix := ""
		for _, p := range []string{peerTLS, metricsTLS} {
			if rest, ok := strings.CutPrefix(name, p); ok && slices.Contains(names, clientTLS+rest) {
				prefix = p
			}
		}
		switch {
		case prefix == "":
			whole = append(whole, name)
		case !slices.Contains(prefixes, prefix+"…"):
			prefixes = append(prefixes, prefix+"…")
		}
	}
	return "`" + strings.Join(append(whole, prefixes...), "`, `") + "`"
}

// item returns an item of a list in Markdown, wrapped at 100 columns.
func item(text string) string {
	var b strings.Builder
	column := 1
	b.WriteString("*")
	for _, word := range strings.Fields(text) {
		if column+1+utf8.RuneCountInString(word) > 100 && column > 1 {
			b.WriteString("\n ")
			column = 1
		}
		b.WriteString(" " + word)
		column += 1 + utf8.RuneCountInString(word)
	}
	return b.String() + "\n"
}

func replaceBetween(t *testing.T, page, name, text string) string {
	t.Helper()
	begin, end := "<!-- "+name+": generated -->\n", "<!-- "+name+": end -->\n"
	before, rest, ok := strings.Cut(page, begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("the page has no place for %s", name)
	}
	return before + begin + text + end + after
}
