package server

import (
	"bufio"
	"strconv"
	"strings"
)

// writeMonitor answers mntr.
func (s *Server) writeMonitor(w *bufio.Writer) {
	for _, v := range s.Monitor() {
		for key, is := range v.Lines() {
			if f, ok := is.(float64); ok {
				is = decimal(f)
				if strings.HasSuffix(v.Name, "_seconds") { // four digits, as ZooKeeper's, would not show most of them
					is = strconv.FormatFloat(f, 'f', 6, 64)
				}
			}
			say(w, "zk_%s\t%v\n", key, is)
		}
	}
}
