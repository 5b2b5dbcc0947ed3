package server

import (
	"iter"

	"github.com/gozkd/gozkd/datatree"
	"github.com/gozkd/gozkd/internal/printable"
)

func (s *Server) treeOptions() datatree.Options {
	return datatree.Options{TrackDirty: s.cfg.Dir != "", ListBytes: int(s.cfg.MaxBuffer), LongList: func(path string, bytes int) {
		if s.life.Serving.Load() { // otherwise warnOfLongLists warns if the list is still long
			s.warnOfLongList(path, bytes)
		}
	}}
}

func (s *Server) warnOfLongList(path string, bytes int) {
	s.cfg.Logger.Warn("a list of children is longer than jute.maxbuffer: clients with this limit cannot read it",
		"path", printable.Shortened(path, maxLoggedReason), "bytes", bytes, "limit", s.cfg.MaxBuffer)
}

// warnOfLongLists warns of the lists that are long at the start. The checkpoint and the log may
// hold others, which were shortened before the previous end.
func (s *Server) warnOfLongLists() {
	s.treeMu.RLock()
	defer s.treeMu.RUnlock()
	s.tree.LongLists(s.warnOfLongList)
}

// restoreTree is datatree.Restore on two goroutines: the caller's reads and decodes the checkpoint
// while another goroutine, which ends before restoreTree returns, builds the tree.
func restoreTree(opts datatree.Options, kv iter.Seq2[[]byte, []byte]) (t *datatree.Tree, err error) {
	const ahead = 4 // batches that may wait for the builder
	batches, built := make(chan *datatree.Batch, ahead), make(chan struct{})
	// Ends when batches is closed, or at the first bad key; the deferred function waits for it,
	// even if kv panics.
	go func() {
		defer close(built)
		t, err = datatree.Build(opts, func(yield func(*datatree.Batch) bool) {
			for b := range batches {
				if !yield(b) {
					return
				}
			}
		})
	}()
	defer func() {
		close(batches)
		<-built
	}()
	for b := range datatree.Decode(kv) {
		select {
		case batches <- b:
		case <-built:
			return
		}
	}
	return
}
