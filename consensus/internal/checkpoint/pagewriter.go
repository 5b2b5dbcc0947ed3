package checkpoint

import (
	"runtime"

	"github.com/gozkd/gozkd/internal/vfs"
)

const (
	// writeBuffer is how many bytes are written at once, if their pages are adjacent.
	writeBuffer = 256 << 10
	// syncBytes is how much is written between two syncs. A single sync at the end would have all
	// the data to write, and the log's syncs would wait for that.
	syncBytes = 1 << 20
)

type span struct{ first, pages uint64 }

// pageWriter allocates pages and writes them, several with one write.
type pageWriter struct {
	file     vfs.File
	pageSize int
	room     func() error // called before each syncBytes; nil: there is room

	free     []span // pages that may be written to
	firstRun int    // earlier spans are too short for more than one page
	noRun    uint64 // no span has this many pages; 0: not known
	freed    []uint64
	end      uint64 // pages of the file

	buf      []byte // adjacent pages that are not in the file yet
	bufPage  uint64 // the first of them
	unsynced int    // bytes since the last sync
}

// release makes the pages of g free for the next transaction. Until this transaction is committed,
// the file is still at the previous transaction, which needs these pages.
func (w *pageWriter) release(g page) {
	for i := range g.pages {
		w.freed = append(w.freed, g.id+i)
	}
}

// append allocates pages for size bytes, and appends to the buffer what fill appends.
func (w *pageWriter) append(size int, fill func(b []byte, id uint64, pages int) []byte) (id uint64, err error) {
	pages := max(1, (size+w.pageSize-1)/w.pageSize)
	id = w.allocate(uint64(pages))
	if id != w.bufPage+uint64(len(w.buf)/w.pageSize) || len(w.buf) >= writeBuffer {
		if err := w.write(); err != nil {
			return 0, err
		}
		w.bufPage = id
		runtime.Gosched() // requests of clients go first
	}
	end := len(w.buf) + pages*w.pageSize
	w.buf = fill(w.buf, id, pages)
	w.buf = append(w.buf, make([]byte, end-len(w.buf))...)
	return id, nil
}

func (w *pageWriter) write() error {
	if len(w.buf) == 0 {
		return nil
	}
	if w.room != nil && w.unsynced == 0 {
		if err := w.room(); err != nil {
			return err
		}
	}
	if _, err := w.file.WriteAt(w.buf, int64(w.bufPage)*int64(w.pageSize)); err != nil {
		return err
	}
	w.unsynced += len(w.buf)
	w.bufPage, w.buf = w.bufPage+uint64(len(w.buf)/w.pageSize), w.buf[:0]
	if w.unsynced >= syncBytes {
		w.unsynced = 0
		return w.file.Sync()
	}
	return nil
}

// allocate takes a run of free pages, or extends the file.
func (w *pageWriter) allocate(pages uint64) uint64 {
	for len(w.free) > 0 && w.free[0].pages == 0 {
		w.free, w.firstRun = w.free[1:], max(w.firstRun-1, 0)
	}
	first := 0
	if pages > 1 {
		first = w.firstRun // otherwise each search would take longer than the last
	}
	if w.noRun == 0 || pages < w.noRun {
		for i := first; i < len(w.free); i++ {
			s := &w.free[i]
			if s.pages < pages {
				continue
			}
			if pages > 1 {
				w.firstRun = i
			}
			s.first, s.pages = s.first+pages, s.pages-pages
			return s.first - pages
		}
		w.noRun = pages
	}
	w.end += pages
	return w.end - pages
}
