package config

// Kerberos holds the keys of Kerberos besides those of the JAAS file.
type Kerberos struct {
	// Conf is the file krb5.conf.
	Conf string
	// AuthToLocal are the rules that make short names of principals; the other two leave parts of
	// the name out.
	AuthToLocal             string
	RemoveHost, RemoveRealm bool
	// RequireConf refuses a krb5.conf without a default realm.
	RequireConf bool
}

var kerberosKeys = []key{
	{name: "java.security.krb5.conf", kind: text, def: "/etc/krb5.conf", status: works, reload: true, note: "file with the default realm and the allowed clock skew",
		field: func(c *Config) any { return &c.Kerberos.Conf }},
	{name: "kerberos.removeHostFromPrincipal", kind: onlyTrue, def: "false", status: works, reload: true, note: "the id of `zk/host@REALM` is `zk@REALM`",
		field: func(c *Config) any { return &c.Kerberos.RemoveHost }},
	{name: "kerberos.removeRealmFromPrincipal", kind: onlyTrue, def: "false", status: works, reload: true, note: "the id of `alice@REALM` is `alice`, in every admitted realm",
		field: func(c *Config) any { return &c.Kerberos.RemoveRealm }},
	{name: "security.auth_to_local", kind: orEmpty(text), def: "DEFAULT", status: works, reload: true, note: "ZooKeeper's rules for short names; principals without a matching rule are refused",
		field: func(c *Config) any { return &c.Kerberos.AuthToLocal }},
	{name: "requireKerberosConfig", kind: boolean, def: "false", status: works, reload: true, note: "krb5.conf must name a default realm",
		field: func(c *Config) any { return &c.Kerberos.RequireConf }},
	{name: "kerberos.*", kind: anything, status: harmless, note: "not a key of ZooKeeper's server"},
	{name: "kinit", kind: anything, status: harmless, note: "an implementation detail of the Java server"},
}
