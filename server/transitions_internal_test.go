package server

import (
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/gozkd/gozkd/consensus"
	"github.com/gozkd/gozkd/internal/testkit/logbuf"
)

// A member that forms a new ensemble has a state before it has applied who votes. It may hear at
// that moment that others have data, and must not say that the quorum is gone.
func TestLogQuorumGone_NoVotersYet(t *testing.T) {
	var said logbuf.Buffer
	s := &transitions{shared: &shared{cfg: &Config{Logger: hclog.New(&hclog.LoggerOptions{Output: &said})}}}
	st := consensus.Status{WithData: []uint64{1, 2, 3}, WithoutData: []uint64{1}}
	if s.logQuorumGone(st) || said.String() != "" {
		t.Errorf("the quorum is gone for good: %s", said.String())
	}
	if st.Voters = []uint64{1, 2, 3}; s.logQuorumGone(st) {
		t.Errorf("two of three are left: %s", said.String())
	}
	if st.WithoutData = []uint64{1, 2}; !s.logQuorumGone(st) {
		t.Error("one of three is left, and nothing is said")
	}
}
