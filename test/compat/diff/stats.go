package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/gozkd/gozkd/proto"
	"github.com/gozkd/gozkd/test/compat/diff/exchange"
)

// stats counts the coverage of a run.
type stats struct {
	requests  int
	perSecond float64
	codes     map[proto.OpCode]map[proto.ErrCode]int // replies of server a
	results   map[proto.ErrCode]int                  // of the operations in multis and multiReads
	events    map[proto.EventType]int
	notes     map[exchange.Note]int
	connects  map[exchange.How]int
	allowed   map[string]int // by id of the difference
}

func newStats() *stats {
	return &stats{
		codes: make(map[proto.OpCode]map[proto.ErrCode]int), results: make(map[proto.ErrCode]int), events: make(map[proto.EventType]int),
		notes: make(map[exchange.Note]int), connects: make(map[exchange.How]int), allowed: make(map[string]int),
	}
}

// add counts the contents of t.
func (s *stats) add(t *exchange.Transcript) {
	s.requests += t.Sequence.Requests()
	for i := range t.Steps {
		if c := t.Sequence.Steps[i].Connect; c != nil {
			s.connects[c.How]++
		}
		for _, m := range t.Messages(i) {
			switch m.Kind {
			case exchange.MessageReply:
				if s.codes[m.Op] == nil {
					s.codes[m.Op] = make(map[proto.ErrCode]int)
				}
				s.codes[m.Op][m.Err()]++
				s.addResults(&m)
			case exchange.MessageEvent:
				s.events[proto.EventType(m.Field("type"))]++
			case exchange.MessageNote:
				s.notes[m.Note]++
			}
		}
	}
}

// addResults counts the results of a multi or multiRead, each with the error code in its header.
func (s *stats) addResults(m *exchange.Message) {
	for i := 0; (m.Op == proto.OpMulti || m.Op == proto.OpMultiRead) && m.Has(fmt.Sprintf("result%d.type", i)); i++ {
		if code := m.Field(fmt.Sprintf("result%d.err", i)); m.Has(fmt.Sprintf("result%d.type", i+1)) { // the last is the end marker
			s.results[proto.ErrCode(code)]++
		}
	}
}

// report prints the coverage and the findings.
func (d *duel) report() {
	s := d.stats
	fmt.Fprintf(d.out, "\n%d requests, %.0f per second on each server\n\nreplies by op and error code:\n", s.requests, s.perSecond)
	for _, op := range slices.Sorted(maps.Keys(s.codes)) {
		var parts []string
		for _, code := range slices.Backward(slices.Sorted(maps.Keys(s.codes[op]))) {
			parts = append(parts, fmt.Sprintf("%d: %d", code, s.codes[op][code]))
		}
		fmt.Fprintf(d.out, "  %-22v %s\n", op, strings.Join(parts, "  "))
	}
	fmt.Fprint(d.out, "  results in multis     ")
	for _, code := range slices.Backward(slices.Sorted(maps.Keys(s.results))) {
		fmt.Fprintf(d.out, " %d: %d ", code, s.results[code])
	}
	fmt.Fprintf(d.out, "\nevents: %v\nhandshakes: %v\nnotes: %v\n\ndifferences on purpose: %v\n", s.events, s.connects, s.notes, s.allowed)
	if len(d.findings) == 0 {
		fmt.Fprintln(d.out, "no other differences")
		return
	}
	fmt.Fprintln(d.out, "\nother differences, with how many sequences showed each first:")
	for _, f := range d.findings {
		fmt.Fprintf(d.out, "  %5d  %s\n", f.count, f.signature)
	}
}
