package server

import "bufio"

// writeMonitor answers mntr.
func (s *Server) writeMonitor(w *bufio.Writer) {
	for _, v := range s.Monitor() {
		for key, is := range v.Lines() {
			if f, ok := is.(float64); ok {
				is = decimal(f)
			}
			say(w, "zk_%s\t%v\n", key, is)
		}
	}
}
