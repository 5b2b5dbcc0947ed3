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

func kerberosKeys(c *Config) []key {
	return []key{
		live("java.security.krb5.conf", text, "/etc/krb5.conf", &c.Kerberos.Conf,
			"file with the default realm and the allowed clock skew"),
		live("kerberos.removeHostFromPrincipal", onlyTrue, "false", &c.Kerberos.RemoveHost,
			"the id of `zk/host@REALM` is `zk@REALM`"),
		live("kerberos.removeRealmFromPrincipal", onlyTrue, "false", &c.Kerberos.RemoveRealm,
			"the id of `alice@REALM` is `alice`, in every admitted realm"),
		live("security.auth_to_local", orEmpty(text), "DEFAULT", &c.Kerberos.AuthToLocal,
			"ZooKeeper's rules for short names; principals without a matching rule are refused"),
		live("requireKerberosConfig", boolean, "false", &c.Kerberos.RequireConf, "krb5.conf must name a default realm"),
		none("kerberos.*", anything, "", "not a key of ZooKeeper's server"),
		none("kinit", anything, "", "an implementation detail of the Java server"),
	}
}
