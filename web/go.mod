// The explorer and REST. A module of its own, so that programs which import gozkd do not inherit its
// decompressor.
module github.com/gozkd/gozkd/web

go 1.26.0

require (
	github.com/gozkd/gozkd v0.1.0
	github.com/hashicorp/go-hclog v1.6.3
	github.com/klauspost/compress v1.20.1
	go.uber.org/goleak v1.3.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/fatih/color v1.19.0 // indirect
	github.com/mattn/go-colorable v0.1.15 // indirect
	github.com/mattn/go-isatty v0.0.22 // indirect
	go.etcd.io/bbolt v1.5.0 // indirect
	go.etcd.io/raft/v3 v3.7.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
