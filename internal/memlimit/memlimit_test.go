package memlimit

import (
	"math"
	"strings"
	"testing"
	"testing/fstest"
)

func TestAvailable_Files(t *testing.T) {
	const meminfo, group = "MemTotal:       24000000 kB\nMemFree:         1000 kB\n", "0::/system.slice/gozkd.service\n"
	const header = "Limit                     Soft Limit           Hard Limit           Units     \n"
	const data = "Max data size             209715200            unlimited            bytes     \n"
	const addresses = "Max address space         1073741824           1073741824           bytes     \n"
	const status = "Name:\tgozkd\nVmSize:\t  819200 kB\nVmRSS:\t   51200 kB\nRssAnon:\t   40960 kB\nVmData:\t   92160 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"no files":    {nil, math.MaxInt64},
		"the machine": {map[string]string{"proc/meminfo": meminfo}, 24000000 << 10},
		"no bound of the group": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": group, "sys/fs/cgroup/system.slice/gozkd.service/memory.max": "max\n",
		}, 24000000 << 10},
		"the group": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": group, "sys/fs/cgroup/system.slice/gozkd.service/memory.max": "536870912\n",
			"sys/fs/cgroup/system.slice/memory.max": "1073741824\n",
		}, 512 << 20},
		"a group above": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": group, "sys/fs/cgroup/system.slice/gozkd.service/memory.max": "max\n",
			"sys/fs/cgroup/system.slice/memory.max": "1073741824\n",
		}, 1 << 30},
		"a container, with its group at the root": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n",
		}, 256 << 20},
		"version 1": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "11:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "134217728\n", "sys/fs/cgroup/memory.max": "5\n",
		}, 128 << 20},
		"version 1 without a bound": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 24000000 << 10},
		"address space that is left, beside the memory in use": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/status": status,
			"proc/self/limits": header + strings.Replace(data, "209715200", "unlimited", 1) + addresses,
		}, (1024 - 800 + 50 - 10) << 20},
		"data that are left": {map[string]string{
			"proc/meminfo": meminfo, "proc/self/status": status,
			"proc/self/limits": header + data + addresses,
		}, (200 - 90 + 50 - 10) << 20},
		"a limit below what is reserved": {map[string]string{
			"proc/self/status": "VmSize:\t819200 kB\nVmData:\t92160 kB\n",
			"proc/self/limits": strings.Replace(data, "209715200", "1048576", 1),
		}, 1},
		"a limit, and nothing about what is reserved": {map[string]string{"proc/self/limits": data}, 200 << 20},
		"nonsense": {map[string]string{
			"proc/meminfo": "MemTotal: many\n", "proc/self/cgroup": "x\n0::/\n:\n", "sys/fs/cgroup/memory.max": "-3\n",
			"proc/self/limits": "Max data size\nMax address space many\n", "proc/self/status": "VmSize: many\nRssAnon:\n",
		}, math.MaxInt64},
	} {
		files := make(fstest.MapFS)
		for f, text := range c.files {
			files[f] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := available(files); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestAvailable_HereIsPositive(t *testing.T) {
	if n := Available(); n <= 0 {
		t.Error(n)
	}
}

func TestField_FileSize(t *testing.T) {
	for soft, want := range map[string]int64{"8388608": 8 << 20, "unlimited": math.MaxInt64} {
		table := "Max cpu time              unlimited            unlimited            seconds\nMax file size             " + soft + "              unlimited            bytes\n"
		if got := field(fstest.MapFS{"proc/self/limits": &fstest.MapFile{Data: []byte(table)}}, "proc/self/limits", "Max file size"); got != want {
			t.Errorf("%s: %d", soft, got)
		}
	}
}
