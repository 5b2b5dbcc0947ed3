// Package config turns a command line, a zoo.cfg and the environment into one plain Config, in ZooKeeper's own
// words: its keys, its system properties, its defaults.
//
// Flags win over zoo.cfg, and zoo.cfg wins over the environment: -D properties in JVMFLAGS and SERVER_JVMFLAGS,
// ZOO_MY_ID and ZOO_SERVERS. What each key does here, and what it may be, is one table (see keys), which
// docs/reference/configuration.md shows. Nothing that was set is passed over in silence: an unknown key is a warning with its
// file and line, a bad value is a problem, and Load reports all problems at once.
//
// The package starts nothing and prints nothing. It knows no server: cmd/gozkd maps Config to what it wires.
package config
