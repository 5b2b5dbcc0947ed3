package server

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// telnetClose is what telnet sends when its user leaves: IAC IP IAC DO. As a length it is negative and would close the
// connection too, but with a line in the log.
const telnetClose = "\xff\xf4\xff\xfd"

// defaultTraceMask is what gtmk answers until stmk said otherwise. Nothing else depends on it.
const defaultTraceMask = 306

const notServing = "This ZooKeeper instance is not currently serving requests"

// wordBuffer is how much of an answer is collected before it is sent. Clients such as kazoo read once and take what
// came, so an answer that fits is one write; a longer one never is in memory as a whole.
const wordBuffer = 64 << 10

// isWord reports whether the first four bytes of a connection are a four-letter word.
func isWord(w string) bool {
	switch w {
	case "ruok", "srvr", "stat", "conf", "cons", "crst", "srst", "dump", "envi", "wchs", "wchc", "wchp", "dirs", "isro",
		"gtmk", "stmk", "hash", "mntr", "hotp", "kind", telnetClose:
		return true
	}
	return false
}

// answerWord answers a four-letter word. The caller closes the connection. in holds the word and what came behind it.
func (c *conn) answerWord(word string, in *input) {
	if word == telnetClose {
		return
	}
	s := c.server
	c.mu.Lock()
	c.receivedPackets++
	c.mu.Unlock()
	s.stats.received.Add(1)
	if word == "stmk" && s.wordAllowed(word) {
		for in.w-in.r < 12 { // bounded by the handshake's deadline, as the word itself was
			if in.fill(c) != nil {
				return
			}
		}
		s.stats.traceMask.Store(int64(binary.BigEndian.Uint64(in.buf[in.r+4:])))
	}
	// Who does not read does not keep the answer's memory for longer than a handshake may take.
	if c.nc.SetWriteDeadline(time.Now().Add(s.live.Load().HandshakeTimeout)) != nil {
		return // closed already
	}
	w := bufio.NewWriterSize(c.nc, wordBuffer)
	s.writeWord(w, word, c)
	if err := w.Flush(); err != nil {
		c.logger().Debug("four-letter word not answered", "word", word, "error", err)
		return
	}
	s.stats.sent.Add(1)
}

// wordAllowed reports whether the whitelist has the word.
func (s *Server) wordAllowed(word string) bool {
	words := s.live.Load().Words
	return word == "srvr" || slices.Contains(words, "*") || slices.Contains(words, word)
}

// writeWord writes the answer to a word that came over asker. Formats: docs/reference/monitoring.md.
func (s *Server) writeWord(w *bufio.Writer, word string, asker *conn) {
	if !s.wordAllowed(word) {
		say(w, "%s is not executed because it is not in the whitelist.\n", word)
		return
	}
	serving := s.ready()
	switch word {
	case "srvr", "stat", "isro":
		// Scripts and probes ask by these whether clients can be sent here. Where no leader is known they can't, though those that are
		// there are kept for a while, and their reads answered: another leader may be a moment away.
		serving = serving && s.node.Status().Current
	}
	switch word {
	case "ruok":
		say(w, "imok")
		return
	case "isro":
		if serving {
			say(w, "rw")
		} else {
			say(w, "null")
		}
		return
	case "gtmk", "stmk":
		say(w, "%d", s.stats.traceMask.Load())
		return
	case "envi":
		s.writeEnvironment(w)
		return
	}
	if !serving {
		say(w, notServing)
		if word != "hash" { // so it is in ZooKeeper
			say(w, "\n")
		}
		return
	}
	switch word {
	case "srvr":
		say(w, "Zookeeper version: %s\n", s.versionLine())
		s.writeState(w)
	case "stat":
		say(w, "Zookeeper version: %s\nClients:\n", s.versionLine())
		s.writeConnections(w, asker, false)
		say(w, "\n")
		s.writeState(w)
	case "conf":
		s.writeConfig(w)
	case "cons":
		s.writeConnections(w, asker, true)
		say(w, "\n")
	case "crst":
		s.ResetConnectionStats()
		say(w, "Connection stats reset.\n")
	case "srst":
		s.ResetStats()
		say(w, "Server stats reset.\n")
	case "dump":
		s.writeDump(w)
	case "wchs":
		conns, paths, watches := s.watches.Stats()
		say(w, "%d connections watching %d paths\nTotal watches:%d\n", conns, paths, watches)
	case "wchc":
		s.writeWatchesByConn(w)
	case "wchp":
		s.writeWatchesByPath(w)
	case "dirs":
		data, log := s.dirSizes()
		say(w, "datadir_size: %d\nlogdir_size: %d\n", data, log)
	case "hash":
		f := s.facts()
		// Signed, as ZooKeeper's is a Java long.
		say(w, "%x: %d\n", uint64(f.zxid), int64(f.digest))
	case "mntr":
		s.writeMonitor(w)
	case "hotp":
		say(w, "%s\n", s.Hot())
	case "kind":
		s.writeKinds(w)
	}
}

// say writes to a word's answer. Its errors are sticky in the writer, whose Flush returns them.
func say(w *bufio.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
