// The check of a release. A module of its own, so that it does not need the modules of a linter.
module github.com/gozkd/gozkd/tools/release

go 1.26.0

require (
	github.com/gozkd/gozkd v0.1.0
	golang.org/x/mod v0.42.0
)
