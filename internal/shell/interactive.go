package shell

import (
	"fmt"
	"io"
)

// reader returns where the lines come from.
func (s *Shell) reader(in io.Reader) lineReader { return newScriptReader(in) }

// prompt is what ZooKeeper's shell asks with: the servers, the state of the session, the number of the next line.
func (s *Shell) prompt() string {
	state := "CLOSED"
	if s.zk != nil {
		state = s.zk.State().String()
	}
	return fmt.Sprintf("[zk: %s(%s) %d] ", s.host, state, s.count)
}
