// Package config builds a Config from the command line, zoo.cfg and the environment. It uses
// ZooKeeper's keys, system properties and defaults.
//
// Flags override zoo.cfg, and zoo.cfg overrides the environment: -D properties in JVMFLAGS and
// SERVER_JVMFLAGS, and the variables of ZooKeeper's container images. One table (see keys) defines
// the effect and the valid values of each key; docs/reference/configuration.md shows it. No setting
// is ignored silently: an unknown key gives a warning with its file and line, an invalid value is a
// problem, and Load reports all problems at once.
//
// The package starts nothing and prints nothing.
//
// # A new key
//
//  1. Add a row to one of the tables in keys*.go. It points to the field that the key sets: in
//     server.Config or tlsconf.Options if the server or TLS uses it, otherwise in Config. The name
//     of a key that ZooKeeper does not have begins with "gozkd.".
//  2. The default is def of the row: resolve sets the field to it. A def that is no valid value,
//     such as "2 ticks", leaves the field zero. If def is a word that would be valid, such as "all
//     addresses", resolve resets the field. For programs that embed the server, ensureDefaults in
//     server/config.go sets the default of a field that is zero.
//  3. A check of several keys together is a method of resolver, which resolve calls. ensureDefaults
//     checks a field of server.Config also for programs that embed the server.
//  4. A field of server.Config that follows from several keys is set by ForServer.
//  5. If the key can change at runtime, its row is live instead of row. A field of server.Config
//     then has the tag reload:"live", and the server reads it from Server.live, or Reload hands it
//     on. A field of Config takes effect through ForServer, or reloader.reload in
//     cmd/gozkd/serve.go applies it.
//  6. A new kind needs valid and invalid values in keys_test.go (values), and a live key a value
//     that changes it in reload_test.go.
//  7. Write the row to docs/reference/configuration.md:
//     go test ./cmd/gozkd/internal/config -run Documentation -rewrite
//  8. Add a line to CHANGELOG.md and, if the key differs from ZooKeeper's on purpose, an entry to
//     docs/reference/differences.md.
//
// Examples: git grep -i RefuseUnreadable shows all places of a key, git grep EnforceQuota those of
// a live one.
package config
