package zkdata

import (
	"bytes"
	"slices"

	"github.com/gozkd/gozkd/internal/zkfiles"
	"github.com/gozkd/gozkd/proto"
)

// What gozkd imports of most directories, and of those of members.
var (
	allTen   = answer{Zxid: "0xa", Digest: "0x34594d9f9", Znodes: 6}
	ofMember = answer{Digest: "0x16c3f2e5f", Znodes: 3}
)

// directories are all directories.
func directories() []directory {
	return slices.Concat(whole(), damagedSnapshots(), damagedLogs(), kinds(), foreign(), members())
}

// whole are directories of which nothing is missing.
func whole() []directory {
	all := tenTransactions()
	return []directory{
		{Name: "a snapshot of the empty tree and all logs", write: func(w *writer) {
			w.file("snapshot.0", snapshotOf(nil))
			w.file("log.1", logOf(all))
		}},
		{Name: "with digests, as 3.9 writes them", write: func(w *writer) {
			all := digests(tenTransactions())
			w.file("snapshot.4", withDigest(snapshotOf(all[:4]), all[:4]))
			w.file("log.1", logOf(all))
		}},
		{Name: "several snapshots and logs", write: func(w *writer) {
			for name, list := range map[string][]*zkfiles.Record{"log.1": all[:4], "log.5": all[4:7], "log.8": all[7:]} {
				w.file(name, zeros(logOf(list)))
			}
			w.file("snapshot.0", snapshotOf(nil))
			w.file("snapshot.4", snapshotOf(all[:4]))
			w.file("snapshot.7", snapshotOf(all[:7]))
		}},
		{Name: "a snapshot and no log", write: func(w *writer) { w.file("snapshot.a", snapshotOf(all)) }},
		{Name: "a snapshot newer than the logs", write: func(w *writer) {
			w.file("snapshot.a", snapshotOf(all))
			w.file("log.1", logOf(all[:6]))
		}},
		{Name: "a fuzzy snapshot", write: func(w *writer) {
			w.file("snapshot.3", fuzzySnapshotOf(all[:9], 6))
			w.file("log.1", logOf(all))
		}},
		{Name: "several epochs", write: func(w *writer) {
			one := records(0x100000000, tenTransactions()[0].Txn, creation("/a", 1))
			two := records(0x200000000, creation("/b", 2))
			five := records(0x500000000, creation("/c", 3), creation("/d", 4))
			w.file("snapshot.0", snapshotOf(nil))
			w.file("log.100000001", zeros(logOf(one)))
			w.file("log.200000001", zeros(logOf(two)))
			w.file("log.500000001", logOf(five))
		}},
		{Name: "logs that overlap", differs: "import-damage", gozkd: answer{Refuses: "comes after"},
			write: func(w *writer) {
				w.file("snapshot.0", snapshotOf(nil))
				w.file("log.1", logOf(all[:7]))
				w.file("log.5", logOf(all[4:]))
			}},
		{Name: "nothing", differs: "import-empty", gozkd: answer{Refuses: "holds no snapshot"},
			write: func(*writer) {}},
		{Name: "an empty version-2", differs: "import-empty", gozkd: answer{Refuses: "holds no snapshot"},
			write: func(w *writer) { w.mkdir(".") }},
	}
}

// snapshots are directories in which snapshots are missing or damaged.
func damagedSnapshots() []directory {
	all := tenTransactions()
	state := func(newest string, b []byte) func(*writer) {
		return func(w *writer) {
			w.file("snapshot.2", snapshotOf(all[:2]))
			w.file(newest, b)
			w.file("log.1", logOf(all))
		}
	}
	trusted := []string{"-Dzookeeper.snapshot.trust.empty=true"}
	complete := withDigest(snapshotOf(all[:6]), all[:6])
	return []directory{
		{Name: "logs from the first transaction on and no snapshot, as 3.4 leaves them",
			differs: "import-without-snapshot", gozkd: allTen,
			write: func(w *writer) { w.file("log.1", logOf(all)) }},
		{Name: "logs from the first transaction on, with snapshot.trust.empty", Flags: trusted,
			write: func(w *writer) { w.file("log.1", logOf(all)) }},
		{Name: "later logs and no snapshot", write: func(w *writer) { w.file("log.5", logOf(all[4:])) }},
		{Name: "later logs, with snapshot.trust.empty", differs: "import-gaps", gozkd: answer{Refuses: "there is no snapshot to begin with"},
			Flags: trusted,
			write: func(w *writer) { w.file("log.5", logOf(all[4:])) }},
		{Name: "an empty snapshot", write: state("snapshot.6", nil)},
		{Name: "an empty snapshot and no other", differs: "import-without-snapshot", gozkd: allTen,
			write: func(w *writer) {
				w.file("snapshot.6", []byte(""))
				w.file("log.1", logOf(all))
			}},
		{Name: "a snapshot that was cut by a kill", write: state("snapshot.6", complete[:len(complete)/2])},
		{Name: "a snapshot of 8 bytes", write: state("snapshot.6", complete[:8])},
		{Name: "a snapshot that was cut before its digest", write: state("snapshot.6", snapshotOf(all[:6]))},
		{Name: "a snapshot that was cut in its digest",
			write: state("snapshot.6", complete[:len(snapshotOf(all[:6]))+7])},
		{Name: "a snapshot of zeros", write: state("snapshot.6", make([]byte, 4096))},
		{Name: "a snapshot with a changed bit, and an older one", differs: "import-damage", gozkd: answer{Refuses: "If the snapshot is damaged, move it away"},
			write: state("snapshot.6", flipped(complete, len(complete)/2))},
		{Name: "a snapshot with a changed bit and no other", write: func(w *writer) {
			w.file("snapshot.6", flipped(complete, len(complete)/2))
			w.file("log.1", logOf(all))
		}},
		{Name: "a snapshot with gzip", write: state("snapshot.6.gz", gzipped(complete))},
		{Name: "a snapshot with snappy", write: state("snapshot.6.snappy", snappied(complete))},
		{Name: "a snapshot with gzip that was cut", write: state("snapshot.6.gz", gzipped(complete)[:40])},
		{Name: "a snapshot with snappy that was cut", write: state("snapshot.6.snappy", snappied(complete)[:60])},
		{Name: "a snapshot that is plain and has the suffix of gzip", differs: "import-damage", gozkd: answer{Refuses: "If the snapshot is damaged, move it away"},
			write: state("snapshot.6.gz", complete)},
		{Name: "a snapshot that is gzip and has no suffix", write: state("snapshot.6", gzipped(complete))},
		{Name: "one zxid, plain and with gzip", write: func(w *writer) {
			state("snapshot.6", complete)(w)
			w.file("snapshot.6.gz", gzipped(complete))
		}},
	}
}

// logs are directories in which logs are missing or damaged.
func damagedLogs() []directory {
	all := tenTransactions()
	state := func(files map[string][]byte) func(*writer) {
		return func(w *writer) {
			w.file("snapshot.0", snapshotOf(nil))
			for name, b := range files {
				w.file(name, b)
			}
		}
	}
	log := logOf(all)
	bare := func(n int) []byte { return log[:len(log)-n] }
	middle := len(logOf(all[:5])) + 30
	wrong := digests(tenTransactions())
	wrong[4].Digest++
	return []directory{
		{Name: "a log that is preallocated with zeros", write: state(map[string][]byte{"log.1": zeros(log)})},
		{Name: "a last record that was cut", write: state(map[string][]byte{"log.1": bare(9)})},
		{Name: "a last record that was cut, and zeros", write: state(map[string][]byte{"log.1": zeros(bare(9))})},
		{Name: "a last record that was cut in its length",
			write: state(map[string][]byte{"log.1": bare(len(log) - len(logOf(all[:9])) - 10)})},
		{Name: "a last record without its final byte", write: state(map[string][]byte{"log.1": bare(1)})},
		{Name: "a log that was cut, and goes on in another",
			write: state(map[string][]byte{"log.1": zeros(append(logOf(all[:5]), log[len(logOf(all[:5])):][:20]...)), "log.6": logOf(all[5:])})},
		{Name: "a last record with a changed bit",
			write: state(map[string][]byte{"log.1": flipped(log, len(log)-20)})},
		{Name: "a record in the middle with a changed bit",
			write: state(map[string][]byte{"log.1": flipped(log, middle)})},
		{Name: "zeros between records", differs: "import-gaps", gozkd: answer{Refuses: "damaged"},
			write: state(map[string][]byte{"log.1": append(zeros(logOf(all[:5])), log[len(logOf(all[:5])):]...)})},
		{Name: "a gap between logs",
			write: state(map[string][]byte{"log.1": logOf(all[:4]), "log.8": logOf(all[7:])})},
		{Name: "a gap after the snapshot",
			differs: "import-gaps", gozkd: answer{Refuses: "transactions are missing before"},
			write: func(w *writer) {
				w.file("snapshot.4", snapshotOf(all[:4]))
				w.file("log.8", logOf(all[7:]))
			}},
		{Name: "a log of its header",
			write: state(map[string][]byte{"log.1": log, "log.b": zkfiles.AppendLogHeader(nil)})},
		{Name: "a log of half its header", differs: "import-headers", gozkd: allTen,
			write: state(map[string][]byte{"log.1": log, "log.b": zkfiles.AppendLogHeader(nil)[:9]})},
		{Name: "an empty log", write: state(map[string][]byte{"log.1": log, "log.b": nil})},
		{Name: "a log of zeros", differs: "import-headers", gozkd: allTen,
			write: state(map[string][]byte{"log.1": log, "log.b": make([]byte, 1<<16)})},
		{Name: "an empty log before another", differs: "import-headers", gozkd: allTen,
			write: state(map[string][]byte{"log.1": nil, "log.2": nil, "log.3": log})},
		{Name: "a log with another name", write: state(map[string][]byte{"log.3": log})},
		{Name: "a log of text",
			write: state(map[string][]byte{"log.1": log, "log.b": bytes.Repeat([]byte("text"), 50)})},
		{Name: "a log with a wrong digest",
			differs: "import-damage", gozkd: answer{Refuses: "the digest after transaction"},
			write: state(map[string][]byte{"log.1": logOf(wrong)})},
	}
}

// kinds are directories with rare znodes, sessions and transactions.
func kinds() []directory {
	session := tenTransactions()[0].Txn
	state := func(txns ...zkfiles.Txn) func(*writer) {
		list := records(0, txns...)
		return func(w *writer) {
			w.file("snapshot.0", snapshotOf(nil))
			w.file("snapshot.3", snapshotOf(list[:3]))
			w.file("log.1", logOf(list))
		}
	}
	container := zkfiles.Txn{Op: proto.OpCreateContainer, Path: "/container", ACL: proto.OpenACL(), ParentCversion: 1}
	ttl := zkfiles.Txn{Op: proto.OpCreateTTL, Path: "/ttl", ACL: proto.OpenACL(), ParentCversion: 2, TTLMs: 60_000_000}
	ephemeral := tenTransactions()[5].Txn
	ephemeral.ParentCversion = 1
	types := []string{"-Dzookeeper.extendedTypesEnabled=true", "-Dznode.container.checkIntervalMs=600000"}
	return []directory{
		{Name: "TTL and container znodes",
			Flags: types, write: state(session, container, ttl, creation("/container/a", 1))},
		{Name: "TTL znodes, without extendedTypesEnabled",
			Flags: types[1:], write: state(session, container, ttl, creation("/container/a", 1))},
		{Name: "an ephemeral of a closed session",
			write: state(session, ephemeral, creation("/a", 2), zkfiles.Txn{Op: proto.OpCloseSession})},
		{Name: "an ephemeral of an unknown session", write: func(w *writer) {
			list := records(0, session, ephemeral, creation("/a", 2))
			w.file("snapshot.3", fuzzySnapshotOf(list, 3))
		}},
		{Name: "a multi and a failed multi",
			write: state(session, zkfiles.Txn{Op: proto.OpMulti, Ops: []zkfiles.Txn{creation("/a", 1), creation("/a/b", 1)}},
				creation("/c", 2), zkfiles.Txn{Op: proto.OpMulti, Ops: []zkfiles.Txn{{Op: proto.OpError}, {Op: proto.OpError, Err: proto.ErrNoNode}}})},
		{Name: "an ACL, and null data", write: state(session,
			zkfiles.Txn{Op: proto.OpCreate, Path: "/a", ACL: []proto.ACL{{Perms: 1, ID: proto.ID{Scheme: "world", ID: "anyone"}}}, ParentCversion: 1},
			creation("/b", 2), zkfiles.Txn{Op: proto.OpSetACL, Path: "/b", ACL: []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "ip", ID: "127.0.0.1"}}}, Version: 1})},
	}
}

// foreign are directories with files of others, or in other places.
func foreign() []directory {
	all := tenTransactions()
	state := func(more func(*writer)) func(*writer) {
		return func(w *writer) {
			w.file("snapshot.4", snapshotOf(all[:4]))
			w.file("log.1", logOf(all))
			more(w)
		}
	}
	newer := snapshotOf(records(0x10, tenTransactions()[0].Txn))
	return []directory{
		{Name: "lost+found and other people's files", write: state(func(w *writer) {
			for _, name := range []string{"lost+found/#123", "../lost+found/#1", ".DS_Store", "README", "log", "snapshot", "log.txt", "snapshot.old",
				"backup.snapshot.4", "../zookeeper_server.pid", "../zoo.cfg"} {
				w.file(name, []byte("not of ZooKeeper"))
			}
		})},
		{Name: "a log of an editor", differs: "import-names", gozkd: allTen,
			write: state(func(w *writer) { w.file("log.1.gz~", []byte("not of ZooKeeper")) })},
		{Name: "temporary files", differs: "import-names", gozkd: allTen, write: state(func(w *writer) {
			w.file("snapshot.99.tmp", newer)
			w.file("acceptedEpoch.tmp", []byte("7"))
			w.file(".snapshot.98.swp", []byte("x"))
		})},
		{Name: "a copy with a further suffix", differs: "import-names", gozkd: allTen,
			write: state(func(w *writer) { w.file("snapshot.11.bak", newer) })},
		{Name: "a name that is no number", write: state(func(w *writer) {
			w.file("snapshot.zz", newer)
			w.file("snapshot.0x11", newer)
			w.file("log.", logOf(all))
		})},
		{Name: "a name in capital letters", write: func(w *writer) {
			w.file("snapshot.A", snapshotOf(all))
			w.file("log.1", logOf(all[:6]))
		}},
		{Name: "a name with leading zeros", write: func(w *writer) {
			w.file("snapshot.0000000a", snapshotOf(all))
			w.file("log.00000001", logOf(all[:6]))
		}},
		{Name: "a directory with the name of a snapshot", write: state(func(w *writer) { w.mkdir("snapshot.99") })},
		{Name: "a directory with the name of a log", differs: "import-names", gozkd: allTen,
			write: state(func(w *writer) { w.mkdir("log.98") })},
		{Name: "version-2 in version-2", write: state(func(w *writer) { w.file("version-2/snapshot.11", newer) })},
		{Name: "no version-2", differs: "import-version-2", gozkd: allTen, write: func(w *writer) {
			w.file("../snapshot.a", snapshotOf(all))
			w.file("../log.1", logOf(all))
		}},
		{Name: "version-1 beside it", write: state(func(w *writer) { w.file("../version-1/snapshot.11", newer) })},
		{Name: "version-2 is a symbolic link", write: func(w *writer) {
			w.file("../elsewhere/snapshot.a", snapshotOf(all))
			w.link("elsewhere", "../version-2")
		}},
		{Name: "files are symbolic links", write: func(w *writer) {
			w.file("../elsewhere/s", snapshotOf(all[:4]))
			w.file("../elsewhere/l", logOf(all))
			w.mkdir(".")
			w.link("../elsewhere/s", "snapshot.4")
			w.link("../elsewhere/l", "log.1")
		}},
		{Name: "a snapshot is a symbolic link to nothing", differs: "import-damage", gozkd: answer{Refuses: "no such file or directory"},
			write: state(func(w *writer) { w.link("gone", "snapshot.11") })},
		{Name: "a log is a symbolic link to nothing", write: state(func(w *writer) { w.link("gone", "log.b") })},
		{Name: "dataLogDir apart", LogDir: true, write: func(w *writer) {
			w.file("snapshot.4", snapshotOf(all[:4]))
			w.file("../../logs/version-2/log.1", logOf(all))
		}},
		{Name: "dataLogDir apart, and logs in dataDir", LogDir: true, write: func(w *writer) {
			w.file("snapshot.4", snapshotOf(all[:4]))
			w.file("log.1", logOf(all))
			w.file("../../logs/version-2/log.5", logOf(all[4:8]))
		}},
		{Name: "dataLogDir apart, and snapshots in it", LogDir: true, write: func(w *writer) {
			w.file("snapshot.4", snapshotOf(all[:4]))
			w.file("../../logs/version-2/log.1", logOf(all))
			w.file("../../logs/version-2/snapshot.a", snapshotOf(all))
		}},
		{Name: "dataLogDir apart and empty", LogDir: true, write: func(w *writer) {
			w.file("snapshot.4", snapshotOf(all[:4]))
			w.mkdir("../../logs")
		}},
	}
}

// members are directories of members of ensembles.
func members() []directory {
	member := func(files map[string]string) func(*writer) {
		return func(w *writer) {
			w.file("snapshot.0", snapshotOf(nil))
			w.file("log.300000001", logOf(records(0x300000000, tenTransactions()[0].Txn, creation("/a", 1))))
			for name, text := range files {
				w.file(name, []byte(text))
			}
		}
	}
	epochs := func(accepted, current string) map[string]string {
		return map[string]string{"../myid": "1\n", "acceptedEpoch": accepted, "currentEpoch": current}
	}
	without := func(name string) map[string]string {
		files := epochs("3", "3")
		delete(files, name)
		return files
	}
	return []directory{
		{Name: "a member", Quorum: true, write: member(epochs("3", "3"))},
		{Name: "a member that accepted a later epoch", Quorum: true, write: member(epochs("5", "3"))},
		{Name: "a member with a later epoch", Quorum: true, write: member(epochs("5", "5"))},
		{Name: "a member with an earlier epoch", differs: "import-epochs", gozkd: ofMember,
			Quorum: true, write: member(epochs("2", "2"))},
		{Name: "a member that accepted an earlier epoch", differs: "import-epochs", gozkd: ofMember,
			Quorum: true, write: member(epochs("2", "3"))},
		{Name: "a member without acceptedEpoch", Quorum: true, write: member(without("acceptedEpoch"))},
		{Name: "a member without currentEpoch", Quorum: true, write: member(without("currentEpoch"))},
		{Name: "a member without both", Quorum: true, write: member(map[string]string{"../myid": "1"})},
		{Name: "a member whose currentEpoch is empty", differs: "import-epochs", gozkd: ofMember,
			Quorum: true, write: member(epochs("3", ""))},
		{Name: "a member whose currentEpoch is no number", differs: "import-epochs", gozkd: ofMember,
			Quorum: true, write: member(epochs("3", "three"))},
		{Name: "a member with currentEpoch.tmp",
			Quorum: true, write: member(map[string]string{"../myid": "1", "acceptedEpoch": "3", "currentEpoch": "2", "currentEpoch.tmp": "3"})},
		{Name: "a member without myid", differs: "import-epochs", gozkd: ofMember,
			Quorum: true, write: member(without("../myid"))},
		{Name: "a member whose myid is no number", differs: "import-epochs", gozkd: ofMember,
			Quorum: true, write: member(map[string]string{"../myid": "one", "acceptedEpoch": "3", "currentEpoch": "3"})},
	}
}
