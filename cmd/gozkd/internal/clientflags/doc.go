// Package clientflags reads how a command connects to servers: its flags for TLS and SASL, and the
// properties of ZooKeeper's own client, from the file of -client-configuration and from
// CLIENT_JVMFLAGS. All commands that dial a server have these flags.
package clientflags
