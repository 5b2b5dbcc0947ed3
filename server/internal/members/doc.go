// Package members judges the members of an ensemble by their reports outside of the log: which
// server lines a majority has agreed on, whose state differs, and at which addresses this server
// reaches the others, or looks for them. It sends nothing and, except for the file of addresses,
// touches nothing: the server passes in what the others have reported, and carries out the
// decisions.
package members
