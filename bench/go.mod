// Measurements. Never released.
module github.com/gozkd/gozkd/bench

go 1.26.0

require (
	github.com/HdrHistogram/hdrhistogram-go v1.4.0
	github.com/gozkd/gozkd v0.1.0
	github.com/gozkd/gozkd/test v0.1.0
	github.com/prometheus/procfs v0.22.0
	golang.org/x/sys v0.49.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
