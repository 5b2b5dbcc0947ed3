// Package tlsconf makes a *tls.Config from ZooKeeper's ssl.* keys: key stores and trust stores,
// protocol versions, cipher suites, the certificates of callers, revocation lists.
//
// A [Source] holds the present content of the files. It looks at them about once a second and
// replaces its content if they have changed; no handshake reads a file. Content that is damaged, or
// incomplete because it is being replaced, is refused with a log line, and the previous content
// serves on. With each new content the keys of session tickets change, so that a session that was
// begun under an older trust store or revocation list cannot be resumed.
//
// A resumed session has its identity, because crypto/tls keeps the client's certificate and its
// verified chain in the session ticket. Revocation and addresses are checked in VerifyConnection,
// which runs for resumed sessions, too; VerifyPeerCertificate would not.
//
// The dialing side sets InsecureSkipVerify, because verifyServer replaces the verification of
// crypto/tls: ZooKeeper's documentation makes certificates without a subject alternative name, and
// Go does not look at common names. A configuration for the empty host verifies nothing but fails.
//
// A damaged file must not stop a server that runs. Sizes are bounded before reading, lengths by
// what the file has, and iterations of password hashing by maxIterations.
//
// Errors name the key, the file and the remedy, and never show a password or a key.
package tlsconf
