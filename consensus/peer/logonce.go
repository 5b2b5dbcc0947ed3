package peer

import (
	"maps"
	"sync"
)

// maxLogged bounds the memory: ids and reasons may come from the network.
const maxLogged = 512

// logOnce records which texts were logged, so that they are not logged again at each attempt.
type logOnce struct {
	mu     sync.Mutex
	logged map[logEntry]struct{}
}

// logEntry is a text about a member; id 0 stands for all unknown members.
type logEntry struct {
	id   uint64
	text string
}

func (l *logOnce) isNew(id uint64, text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	entry := logEntry{id, text}
	if _, ok := l.logged[entry]; ok {
		return false
	}
	if l.logged == nil || len(l.logged) >= maxLogged {
		l.logged = make(map[logEntry]struct{})
	}
	l.logged[entry] = struct{}{}
	return true
}

func (l *logOnce) forget(id uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.logged, func(e logEntry, _ struct{}) bool { return e.id == id })
}
