package consensus

import (
	"fmt"

	"github.com/hashicorp/go-hclog"
)

// raftLogger passes raft's log lines to hclog. Raft's Info describes the steps of elections. An
// operator sees the changes of leadership that the node logs itself (transitions.go), so raft's
// Info and Warning become Debug.
type raftLogger struct{ log hclog.Logger }

func (l raftLogger) Debug(v ...any)              { l.log.Trace(fmt.Sprint(v...)) }
func (l raftLogger) Debugf(f string, v ...any)   { l.log.Trace(fmt.Sprintf(f, v...)) }
func (l raftLogger) Info(v ...any)               { l.log.Debug(fmt.Sprint(v...)) }
func (l raftLogger) Infof(f string, v ...any)    { l.log.Debug(fmt.Sprintf(f, v...)) }
func (l raftLogger) Warning(v ...any)            { l.log.Debug(fmt.Sprint(v...)) }
func (l raftLogger) Warningf(f string, v ...any) { l.log.Debug(fmt.Sprintf(f, v...)) }
func (l raftLogger) Error(v ...any)              { l.log.Error(fmt.Sprint(v...)) }
func (l raftLogger) Errorf(f string, v ...any)   { l.log.Error(fmt.Sprintf(f, v...)) }

// Fatal and Panic mean that raft found its invariants violated: going on would spread the damage.

func (l raftLogger) Fatal(v ...any)            { panic(fmt.Sprint(v...)) }
func (l raftLogger) Fatalf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
func (l raftLogger) Panic(v ...any)            { panic(fmt.Sprint(v...)) }
func (l raftLogger) Panicf(f string, v ...any) { panic(fmt.Sprintf(f, v...)) }
