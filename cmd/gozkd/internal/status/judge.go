package status

import (
	"fmt"
	"strings"

	"github.com/gozkd/gozkd/cmd/gozkd/internal/probe"
)

// judge returns what is wrong, one sentence each: nothing if every server serves and, of several, one leads and the others follow.
func judge(servers []server) []string {
	var problems, leaders []string
	known := true
	for i := range servers {
		s := &servers[i]
		switch {
		case s.err != nil:
			problems = append(problems, s.address+": "+probe.Cause(s.err))
			known = false
		case s.state.Mode == probe.ModeReadOnly:
			problems = append(problems, s.address+": serves reads only: it is not part of a quorum")
		case s.state.Mode == probe.ModeStandalone && len(servers) > 1:
			problems = append(problems, s.address+": is standalone and no member of an ensemble")
		case s.state.Mode == probe.ModeLeader:
			leaders = append(leaders, s.address)
		}
	}
	switch {
	case len(servers) == 1, len(leaders) == 1:
	case len(leaders) > 1:
		problems = append(problems, fmt.Sprintf("%d servers lead: %s", len(leaders), strings.Join(leaders, ", ")))
	case known:
		problems = append(problems, "none of them leads")
	default:
		problems = append(problems, "none of those that answer leads")
	}
	return problems
}
