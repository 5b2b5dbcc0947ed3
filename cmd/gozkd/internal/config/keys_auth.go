package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/internal/secretfile"
	"github.com/gozkd/gozkd/sasl"
	"github.com/gozkd/gozkd/sasl/kerberos/principal"
)

// Auth is how clients authenticate by SASL, and which identities they need. Config.Server.Auth has
// the other keys of authentication.
type Auth struct {
	// JAASFile is a JAAS file and JAASSection its section for the server; UserFile has more users
	// of DIGEST-MD5. SuperPassword is the password of the user super.
	JAASFile, JAASSection, UserFile, SuperPassword string
	// Users are the users of DIGEST-MD5, and Kerberos the Krb5LoginModule: empty for none.
	Users    sasl.DigestUsers
	Kerberos sasl.LoginModule

	// Providers are the classes of authProvider.N.
	Providers []string
	// RequireSASL is sessionRequireClientSASLAuth; see RequiredSchemes for the others.
	RequireSASL, Enforce bool
	Schemes              []string
}

const (
	jaasFile       = "java.security.auth.login.config"
	jaasSection    = "sasl.serverconfig"
	saslUserFile   = "gozkd.sasl.userFile"
	enforceEnabled = "enforce.auth.enabled"
	enforceSchemes = "enforce.auth.schemes"
	superUsers     = "superUser.*"
	authProviders  = "authProvider.*"

	// providerPackage has ZooKeeper's own classes of authProvider.N.
	providerPackage  = "org.apache.zookeeper.server.auth."
	saslProvider     = providerPackage + "SASLAuthenticationProvider"
	x509Provider     = providerPackage + "X509AuthenticationProvider"
	ensembleProvider = providerPackage + "EnsembleAuthenticationProvider"
)

// shortNames is the rules of Kerberos for short names.
var shortNames = checked("DEFAULT and RULE:[n:format](regexp)s/pattern/replacement/g", func(v string) (principal.Rules, error) {
	return principal.ParseRules(v, "")
})

// nameList is a list that may be empty.
var nameList = kind{
	allowed: "names separated by commas",
	parse:   func(v string) (string, bool) { return strings.Join(splitList(v), ","), true },
}

func authKeys(c *Config) []key {
	return []key{
		live(jaasFile, text, "", &c.Auth.JAASFile,
			"JAAS file with a DigestLoginModule (DIGEST-MD5), a Krb5LoginModule ([Kerberos](../guide/security.md#kerberos)), or both"),
		live(jaasSection, orEmpty(text), "Server", &c.Auth.JAASSection, "section of the JAAS file for the server"),
		live(saslUserFile, text, "", &c.Auth.UserFile,
			"file with more DIGEST-MD5 users, as hashes: `htdigest FILE zk-sasl-md5 USER`"),
		live("SASLAuthenticationProvider.superPassword", password, "", &c.Auth.SuperPassword,
			"password of the SASL user `super`, admitted by all sasl ACLs").hidden(),
		row(superUsers, orEmpty(text), "", nil, "sasl identities that every ACL admits").alias("superUser"),
		live("letAnySaslUserDoX", orEmpty(text), "", &c.Server.Auth.LetAnySASLUserDoX,
			"an id that in sasl ACLs means every SASL user"),
		live("allowSaslFailedClients", boolean, "false", &c.Server.Auth.AllowFailedSASL,
			"a client that fails SASL stays connected, without the identity"),
		row(authProviders, anything, "", nil,
			"`"+saslProvider+"` lets ACLs name sasl, `X509AuthenticationProvider` x509 (as client TLS does), `EnsembleAuthenticationProvider` enables the scheme ensemble"),
		live("ensembleAuthName", nameList, "", &c.Server.Auth.EnsembleNames,
			"names of this ensemble; clients with another are disconnected"),
		live("sessionRequireClientSASLAuth", boolean, "false", &c.Auth.RequireSASL,
			"as enforce.auth.enabled with enforce.auth.schemes=sasl"),
		live(enforceEnabled, boolean, "false", &c.Auth.Enforce,
			"clients without an identity of enforce.auth.schemes are refused (-124)"),
		live(enforceSchemes, nameList, "", &c.Auth.Schemes,
			"sasl and x509 (which need their authProvider), digest, and ip, which everybody has"),
		live("extendedTypesEnabled", boolean, "true", not{&c.Server.RefuseTTL},
			"false, ZooKeeper's default: TTL znodes cannot be created (-6)"),
		{name: "requireClientAuthScheme", kind: anything, status: later,
			note: "no version of ZooKeeper knows it. sessionRequireClientSASLAuth=true demands SASL of clients"},
		none("jaasLoginRenew", anything, "", "an implementation detail of the Java server"),
		row("IPAuthenticationProvider.usexforwardedfor", boolean, "false", &c.AdminForwardedFor,
			"with gozkd.admin.open, ip is from X-Forwarded-For, which callers can forge"),
		none("enableEagerACLCheck", boolean, "false", "ACLs are checked once, in the order of requests"),
	}
}

// numbered returns the values of a key of which there are several.
func (k *key) numbered(c *Config) []string {
	switch k.name {
	case superUsers:
		return c.Server.Auth.SASLSupers
	case authProviders:
		return c.Auth.Providers
	}
	return nil
}

// auth reads the files with users, and checks what clients need to prove.
func (r *resolver) auth(c *Config) {
	a := &c.Auth
	for _, name := range r.order {
		w := r.won[name]
		switch w.row.name {
		case superUsers:
			if w.value != "" {
				c.Server.Auth.SASLSupers = append(c.Server.Auth.SASLSupers, w.value)
			}
		case authProviders:
			a.Providers = append(a.Providers, w.value)
			switch w.value {
			case saslProvider, x509Provider, ensembleProvider, providerPackage + "IPAuthenticationProvider", providerPackage + "DigestAuthenticationProvider":
			default:
				r.warn(w.from, w.key, "THE CLASS %q CANNOT BE LOADED: every client that authenticates itself by its scheme fails, and no ACL can name that scheme", w.value)
			}
		}
	}
	r.noEffect(!c.EnsembleScheme(), "ensembleAuthName", " without authProvider.1="+ensembleProvider)
	a.Users = make(sasl.DigestUsers)
	if r.users != nil {
		a.Users = r.users
	}
	r.jaas(a)
	r.groupProblems(jaasFile, a.Kerberos.Class != "", "no JAAS file has a Krb5LoginModule")
	if a.UserFile != "" {
		w := r.won[saslUserFile]
		shared, err := readUsers(a.UserFile, a.Users)
		if err != nil {
			r.problem(w.from, w.key, "is %s: %v", a.UserFile, err)
		}
		if shared != "" {
			r.warn(w.from, w.key, "is %s: %s", a.UserFile, shared)
		}
	}
	r.enforcement(c)
}

func (r *resolver) jaas(a *Auth) {
	super := r.won["SASLAuthenticationProvider.superPassword"]
	if a.JAASFile == "" {
		if a.SuperPassword != "" && len(a.Users) > 0 {
			a.Users.Set("super", a.SuperPassword)
		} else if a.SuperPassword != "" {
			r.warn(super.from, super.key, "(hidden) has no effect: no JAAS file has users of DIGEST-MD5")
		}
		return
	}
	w := r.won[jaasFile]
	j, warning, err := sasl.LoadJAAS(a.JAASFile, r.property)
	if err != nil {
		r.problem(w.from, w.key, "%v", err)
		return
	}
	if warning != "" {
		r.warn(w.from, w.key, "%s", warning)
	}
	if _, ok := j[a.JAASSection]; !ok {
		if s, given := r.won[jaasSection]; given {
			r.problem(s.from, s.key, "is %s, a section that %s does not have", a.JAASSection, a.JAASFile)
		} else {
			r.warn(w.from, w.key, "%s has no section %s: no client can authenticate itself by SASL", a.JAASFile, a.JAASSection)
		}
		return
	}
	digest, krb := j.Module(a.JAASSection, sasl.DigestLoginModule), j.Module(a.JAASSection, sasl.KerberosLoginModule)
	if digest != nil {
		maps.Copy(a.Users, j.DigestUsers(a.JAASSection, a.SuperPassword))
	}
	if krb != nil {
		a.Kerberos = *krb
	}
	if digest == nil && krb == nil {
		r.problem(w.from, w.key, "the section %s of %s has neither %s nor %s: name one of these, because other login modules are Java classes", a.JAASSection, a.JAASFile, sasl.DigestLoginModule, sasl.KerberosLoginModule)
	}
}

// property returns a Java property of the command line or the environment.
func (r *resolver) property(name string) (value string, ok bool) {
	for _, p := range slices.Concat(r.properties, r.flagProperties) {
		if v, same := strings.CutPrefix(p, name+"="); same {
			value, ok = v, true
		}
	}
	return value, ok
}

// maxUserFile bounds the file with users, in bytes.
const maxUserFile = 1 << 20

// readUsers reads a file that htdigest made. shared is that of secretfile.Read: a hash
// authenticates as the password does. The errors do not show hashes.
func readUsers(path string, users sasl.DigestUsers) (shared string, err error) {
	b, shared, err := secretfile.Read(path, maxUserFile)
	if err != nil {
		return "", err
	}
	for n, line := range strings.Split(string(b), "\n") {
		if line = trim(line); line == "" || line[0] == '#' {
			continue
		}
		hash := line[strings.LastIndexByte(line, ':')+1:]
		name, realm := strings.CutSuffix(strings.TrimSuffix(line, ":"+hash), ":"+sasl.Realm)
		if !realm || name == "" {
			return shared, fmt.Errorf("line %d is not user:%s:HASH: make it with htdigest %s %s USER", n+1, sasl.Realm, path, sasl.Realm)
		}
		if err := users.SetHash(name, hash); err != nil {
			return shared, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	return shared, nil
}

// enforcement checks the schemes that clients need.
func (r *resolver) enforcement(c *Config) {
	a := &c.Auth
	if !a.Enforce && !a.RequireSASL {
		r.noEffect(len(a.Schemes) > 0, enforceSchemes, ": "+enforceEnabled+" is false")
		return
	}
	w := r.firstOn("sessionRequireClientSASLAuth", enforceSchemes, enforceEnabled)
	if len(c.RequiredSchemes()) == 0 {
		r.problem(w.from, w.key, "is %s, but %s names no scheme: set it to sasl, x509 or digest", w.value, enforceSchemes)
	}
	for _, scheme := range c.RequiredSchemes() {
		switch {
		case scheme == "ip":
			r.warn(w.from, w.key, "ip admits everybody: each client has an identity of that scheme")
		case scheme == "digest" && !c.Server.DisableDigest, scheme == "x509" && c.x509():
		case scheme == "sasl" && (a.RequireSASL || slices.Contains(a.Providers, saslProvider)):
			if len(a.Users) == 0 && a.Kerberos.Class == "" {
				r.warn(w.from, w.key, "NO CLIENT CAN AUTHENTICATE ITSELF by sasl: %s names no JAAS file with users of this server", jaasFile)
			}
		case scheme == "sasl":
			r.problem(w.from, w.key, "names sasl, which needs authProvider.1=%s", saslProvider)
		case scheme == "x509":
			r.problem(w.from, w.key, "names x509, which needs secureClientPort or client.portUnification")
		default:
			r.problem(w.from, w.key, "names %q; allowed: sasl, x509, digest, ip", scheme)
		}
	}
}

// RequiredSchemes returns the schemes that clients need an identity of one of; empty: none.
func (c *Config) RequiredSchemes() []string {
	switch {
	case c.Auth.RequireSASL:
		return []string{"sasl"}
	case c.Auth.Enforce:
		return c.Auth.Schemes
	}
	return nil
}

func (c *Config) x509() bool { return c.ServesTLS() || slices.Contains(c.Auth.Providers, x509Provider) }

// ACLSchemes returns the schemes of x509 and sasl that ACLs may name.
func (c *Config) ACLSchemes() (schemes []string) {
	if c.x509() {
		schemes = append(schemes, "x509")
	}
	if slices.Contains(c.Auth.Providers, saslProvider) {
		schemes = append(schemes, "sasl")
	}
	return schemes
}

// EnsembleScheme reports whether the scheme ensemble is there.
func (c *Config) EnsembleScheme() bool { return slices.Contains(c.Auth.Providers, ensembleProvider) }

// Kerberos holds the keys of Kerberos besides those of the JAAS file.
type Kerberos struct {
	// Conf is the file krb5.conf.
	Conf string
	// AuthToLocal are rules for short names; the other two leave parts of the name out.
	AuthToLocal             string
	RemoveHost, RemoveRealm bool
	// RequireConf refuses a krb5.conf without a default realm.
	RequireConf bool
}

func kerberosKeys(c *Config) []key {
	return []key{
		live("java.security.krb5.conf", text, "/etc/krb5.conf", &c.Kerberos.Conf,
			"file with the default realm and the allowed clock skew"),
		live("kerberos.removeHostFromPrincipal", onlyTrue, "false", &c.Kerberos.RemoveHost,
			"the id of `zk/host@REALM` is `zk@REALM`"),
		live("kerberos.removeRealmFromPrincipal", onlyTrue, "false", &c.Kerberos.RemoveRealm,
			"the id of `alice@REALM` is `alice`, in every admitted realm"),
		live("security.auth_to_local", orEmpty(shortNames), "DEFAULT", &c.Kerberos.AuthToLocal,
			"ZooKeeper's rules for short names; principals without a matching rule are refused").of(jaasFile),
		live("requireKerberosConfig", boolean, "false", &c.Kerberos.RequireConf, "krb5.conf must name a default realm"),
		none("kerberos.*", anything, "", "not a key of ZooKeeper's server"),
		none("kinit", anything, "", "an implementation detail of the Java server"),
	}
}
