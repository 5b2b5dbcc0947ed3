package gozk

import (
	"context"

	"github.com/go-zookeeper/zk"

	"github.com/gozkd/gozkd/internal/testkit/must"
	"github.com/gozkd/gozkd/test/compat/cases"
)

func (s *script) recipes() []work {
	return []work{
		{"lock_excludes", s.lockExcludes},
		{"lock_data", lockData},
	}
}

// lockExcludes lets several sessions increment a number that only the lock protects.
func (s *script) lockExcludes(ctx context.Context, _ *zk.Conn, root string) {
	const sessions, each = 4, 10
	inside, total := 0, 0
	var works []func()
	for range sessions {
		works = append(works, func() {
			c := s.connect(ctx)
			defer c.Close()
			lock := zk.NewLock(c, root+"/lock", open())
			for range each {
				must.Do(lock.Lock())
				if inside++; inside != 1 {
					must.Failf("%d hold the lock", inside)
				}
				total++
				inside--
				must.Do(lock.Unlock())
			}
		})
	}
	must.All(works...)
	cases.Expect("total", total, sessions*each)
}

func lockData(_ context.Context, c *zk.Conn, root string) {
	lock := zk.NewLock(c, root+"/lock", open())
	must.Do(lock.LockWithData([]byte("who")))
	names, _ := must.Get2(c.Children(root + "/lock"))
	if len(names) != 1 {
		must.Failf("got %q", names)
	}
	data, _ := must.Get2(c.Get(root + "/lock/" + names[0]))
	cases.Expect("data", string(data), "who")
	want("second lock", lock.Lock(), zk.ErrDeadlock)
	must.Do(lock.Unlock())
}
