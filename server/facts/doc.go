// Package facts holds the facts about a server: plain types, without a connection to the
// server they came from. The methods of server.Server that return them are called facts, too;
// package server has an alias for each type.
//
// The admin commands, the Prometheus metrics and the four-letter words are three renderings of
// these facts. The types are in a package below server because server answers the four-letter words
// on its client port and therefore imports their renderer, which could not import server in turn.
// See package internal/fourletter.
package facts
