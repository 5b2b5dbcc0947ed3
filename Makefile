# The targets that .ci/run and a developer share. `make test` needs only Go; `make help` lists the rest.

GO        ?= go
FUZZRUNS  ?= 500000x
KILLS     ?= 500
TIME      ?= 2m
SEEDS     ?= 1000
HOURS     ?= 1
DIST      ?= dist
COMPAT_OPS ?= 200000
COMPAT_TLS_OPS ?= 3000
COMPAT_MEMBERS_OPS ?= 2000
COMPAT_JOBS ?= 2
# Built without go.work, in which its few hundred modules are not, and run with it.
LINT       = .cache/golangci-lint
# The race detector needs a working C compiler: asked for by building with it, so that a machine without one still tests.
RACE       = $(shell CGO_ENABLED=1 $(GO) build -race runtime/cgo >/dev/null 2>&1 && echo -race || echo "make: no C compiler: testing without -race" >&2)

# The race detector lets each test binary sleep for a second before it ends, in case a goroutine is left that races.
# The tests check that no goroutine is left.
export GORACE ?= atexit_sleep_ms=0

.PHONY: build test race inv exhaustive fuzz bench bench-compare lint fmt compat compat-full golden regress killtest recipesim archivetest sim simservers jepsen mutants mutants-generated hostile attacks tidy version release upgrade testkits chart alerts web web-pictures web-axe openapi help
.DEFAULT_GOAL := help

build:    ## build bin/gozkd and bin/gozkd-testkit, without cgo
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/gozkd ./cmd/gozkd-testkit
# "work" are the packages of all modules in go.work; ./... those of the library.
# The watchdog of internal/testkit stops a test that hangs, within a minute on a quiet machine. -timeout is
# the outer bound, for a machine on which the whole suite is slow.
# Many tests wait for timers, sockets and disks: one package more than there are processors runs at a time.
# go test begins packages in the order given: server takes longest, and would be left to run alone.
# The race detector takes four fifths of the time of the packages in UNRACED and would find nothing there that is
# shipped: neither they nor their tests start a goroutine (internal/archtest checks that), except for tests named
# TestRace_, which also run with it, and those of test/mutants, which type-check patches of planted bugs. The same holds
# for the simulations of consensus, TestSim_, of which only TestSim runs with it. TestRun_DiskFull reconnects clients of
# go-zookeeper 1.0.4 with watches, in which the detector sometimes finds a race. make race has them all.
UNRACED = ./test/mutants ./wal ./test/mutants/generate ./cmd/gozkd/internal/config ./consensus/internal/core \
	./internal/archtest ./internal/zkfiles ./test/compat/diff/generate ./datatree ./consensus/internal/checkpoint \
	./consensus/internal/turn ./server/internal/liveness ./server/internal/tenant
test:     ## all tests; with the race detector where a C compiler is found
	flags="-p $$(($$(getconf _NPROCESSORS_ONLN) + 1)) -timeout 40m" failed=0 && \
	all=$$($(GO) list work) && unraced=$$($(GO) list $(UNRACED)) && \
	{ $(GO) test $$flags $$unraced || failed=1; } && \
	{ $(GO) test $$flags -run '^TestSim_|^TestRun_DiskFull$$' ./consensus ./test/jepsen-lite || failed=1; } && \
	{ $(GO) test $$flags $(RACE) -run '^TestRace_' ./datatree ./consensus/internal/checkpoint || failed=1; } && \
	$(GO) test $$flags $(RACE) -skip '^TestSim_|^TestRun_DiskFull$$' ./server $$(echo "$$all" | grep -vxF "$$unraced") && exit $$failed
race:     ## all tests with the race detector, never without
	CGO_ENABLED=1 $(GO) test -timeout 40m -race work
inv:      ## all tests with the invariant checks compiled in
	$(GO) test -timeout 40m -tags invariants work
# In the packages left out, make test runs the same tests: their test binaries contain neither
# internal/testkit/exhaustive nor internal/invariants.
exhaustive: ## all tests over their whole range, with the invariant checks: every truncation, many drawn runs; PART=K/N for those of every Nth package
	packages=$$($(GO) list -tags invariants -test -f '{{range .Deps}}{{.}} {{end}}: {{.ImportPath}}' work | \
		sed -En 's,.*/internal/(testkit/exhaustive|invariants) .*: ([^ ]*)\.test$$,\2,p' | \
		awk -v part=$(or $(PART),0/1) 'BEGIN { split(part, p, "/") } NR % p[2] == p[1] % p[2]') && \
	test -n "$$packages" && \
	GOZKD_EXHAUSTIVE=1 $(GO) test -timeout 60m -tags invariants $$packages
fuzz:     ## each fuzz target FUZZRUNS (500000x) times
	.ci/fuzz $(FUZZRUNS)
bench:    ## all benchmarks next to the code; next to ZooKeeper: bench-compare
	$(GO) test -run '^$$' -bench . -benchmem -timeout 60m work
bench-compare: ## all that is to be reached, next to ZooKeeper, into .cache/bench; about an hour on a quiet machine; BENCH for flags
	$(GO) run ./bench compare $(BENCH)
.PHONY: bench-waiters
bench-waiters: ## 10,000 waiters of one client on a lock, on a semaphore and in an election: recipes, kazoo and Curator on gozkd; WAITERS for flags, such as -waiters 1000
	$(GO) run ./bench waiters -servers gozkd $(WAITERS)
lint:     ## golangci-lint, at the version pinned in tools/go.mod
	GOWORK=off $(GO) build -C tools -o ../$(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	$(LINT) run --allow-parallel-runners $$($(GO) list -m -f '{{.Dir}}/...')
fmt:      ## gofmt everything
	gofmt -l -w .
compat:   ## against a real ZooKeeper and other people's clients; CLIENTS for flags, such as -server gozkd; PART=K/N of the recorded answers to configurations; MOVING='-releases all -rounds 3' for all; COMPAT_OPS (200000), COMPAT_TLS_OPS (3000 per format of stores), COMPAT_MEMBERS_OPS (2000 on ensembles) and COMPAT_SEED
	$(MAKE) -j$(COMPAT_JOBS) --output-sync=line $(COMPAT)
# The programs wait most of the time: COMPAT_JOBS of them run at once. The longest come first.
COMPAT = $(addprefix compat-,config clients suites moving migrate hostile modes security kerberos diff diff-members diff-PEM diff-PKCS12 diff-JKS audit)
.PHONY: $(COMPAT)
COMPAT_SEEDED = $(if $(COMPAT_SEED),-seed $(COMPAT_SEED))
compat-clients: ; $(GO) run ./test/compat $(CLIENTS)
compat-suites:  ; $(GO) run ./test/compat/suites -quick
compat-moving:  ; $(GO) run ./test/compat/moving -rounds 1 $(MOVING) $(COMPAT_SEEDED)
compat-migrate: ; $(GO) run ./test/compat/moving -live 3.9.5 $(COMPAT_SEEDED)
compat-hostile: ; $(GO) run ./test/compat/hostile -time 20s $(COMPAT_SEEDED)
compat-diff:    ; $(GO) run ./test/compat/diff -ops $(COMPAT_OPS) $(COMPAT_SEEDED)
compat-diff-members: ; $(GO) run ./test/compat/diff -members 3 -ops $(COMPAT_MEMBERS_OPS) $(COMPAT_SEEDED)
compat-diff-PEM compat-diff-PKCS12 compat-diff-JKS: compat-diff-%: ; $(GO) run ./test/compat/diff -tls $* -ops $(COMPAT_TLS_OPS) $(COMPAT_SEEDED)
compat-modes compat-security compat-kerberos compat-audit: compat-%: ; $(GO) run ./test/compat/twins -script $*
compat-config:  ; $(GO) test ./test/compat/config -count 1 -timeout 0 -zookeeper $(or $(CONFIG),compare -part $(or $(PART),0/1))
compat-full: ## programs and whole test suites of other people, on gozkd and on ZooKeeper; more than an hour; PROGRAMS and SUITES for flags, such as -suite kazoo
	GOZKD_BROWSER="$(BROWSER)" $(GO) run ./test/compat/programs $(PROGRAMS)
	$(GO) run ./test/compat/suites $(SUITES)
	$(MAKE) compat-directories
.PHONY: compat-directories
compat-directories: ## what ZooKeeper does with the directories of which TestDirectories imports each; DIRECTORIES=record after a change
	$(GO) run ./test/compat/moving -directories $(or $(DIRECTORIES),compare)
golden:   ## record the exchanges that make test replays, from a real ZooKeeper
	$(GO) run ./test/compat/diff -golden test/golden/testdata
regress:  ## replay every saved failure
	$(GO) test -timeout 10m -count=1 -run 'Regress' work
killtest: ## a lone server under load is killed with kill -9 KILLS times (500), and stopped with SIGSTOP; SEED
	$(GO) run ./test/jepsen-lite/jepsen -members 1 -faults kill-burst,pause-all -bursts $(KILLS) -time 0 -pace 2ms $(if $(SEED),-seed $(SEED))
# -trimpath whatever GOFLAGS says: the build cache then has the overlaid library, and all else, once for all clones.
simservers: ## whole servers in virtual time: HOURS simulated hours (1), from SEED (1) on; SIM for more flags; OVERLAY=no builds faster, but seeds are not repeatable
	overlay=$(if $(filter no,$(OVERLAY)),,$$($(GO) run -trimpath ./test/sim/overlay)) && \
	env $${overlay:+GOEXPERIMENT=norandomizedheapbase64} $(GO) test -trimpath -vet=off -overlay "$$overlay" -cpu 1 -timeout 0 -count=1 -v \
		-exec 'env GOMAXPROCS=1 GOGC=off GODEBUG=asyncpreemptoff=1,gcstoptheworld=2' -run '^Test(Sim|Overlay_.*)$$' \
		./test/sim -sim.overlay="$$overlay" -sim.hours=$(HOURS) $(if $(SEED),-sim.seed=$(SEED)) $(SIM)
# Only tests with recipetest.Check simulate for that long; the others of their packages run once.
recipesim: ## recipes in virtual time under drawn faults: HOURS (1) simulated hours of each property; 53 make 1,000 in all
	$(GO) test -timeout 0 -count=1 -v $$(grep -rl 'recipetest\.Check(' recipes | xargs -n1 dirname | sort -u | sed 's,^,./,') \
		-recipetest.hours=$(HOURS) -rapid.checks=50
archivetest: ## 1,000 faults of members, shippers and the store of the archive, in virtual time; every sampled moment is restored
	GOZKD_EXHAUSTIVE=1 $(GO) test -timeout 30m -count=1 -v -run '^TestArchive_' ./cmd/gozkd/internal/backup
sim:      ## the simulator: SEEDS runs (1000), from SEED on; see docs/quality/how-we-test.md
	GOGC=400 $(GO) test -timeout 0 -count=1 -v -run '^TestSim$$' ./consensus -rapid.checks=$(SEEDS) $(if $(SEED),-rapid.seed=$(SEED))
mutants:  ## plant bugs and see that the checks find them; MUTANTS for flags, such as -run wal or -subset 3/10
	$(GO) test -count=1 ./test/mutants # go test would not notice changes of other modules
	$(GO) run ./test/mutants $(MUTANTS)
mutants-generated: ## change each condition, call, assignment and constant of package PKG (consensus/internal/core); MUTANTS for flags
	$(GO) run ./test/mutants/generate $(if $(PKG),-pkg $(PKG)) $(MUTANTS)
jepsen:   ## an ensemble under faults for TIME (2m): SEED, and JEPSEN for more flags, such as -server zookeeper
	$(GO) run ./test/jepsen-lite/jepsen -time $(TIME) $(if $(SEED),-seed $(SEED)) $(JEPSEN)
hostile:  ## recipes of Curator, kazoo and Go at once on servers that are killed and stopped, for TIME (2m); HOSTILE for more flags, such as -plant
	$(GO) run ./test/compat/hostile -time $(TIME) $(if $(SEED),-seed $(SEED)) $(HOSTILE)
attacks:  ## a stranger tries to hurt the server, next to ZooKeeper; ATTACKS for flags, such as -server gozkd or -attack words
	$(GO) run ./test/attacks $(ATTACKS)
tidy:     ## go mod tidy in the modules of go.work, whose siblings of the next version exist only here
	.ci/tidy
version:  ## set the version of the next release to VERSION, such as 0.2.0, in all go.mod files, go.work and the Helm chart
	sed -Ei 's,(github\.com/gozkd/gozkd[^ ]*) v[^ ]+,\1 v$(VERSION),' go.work $$(git ls-files '*go.mod')
	sed -Ei 's/^((appV|v)ersion:) .*/\1 $(VERSION)/' deploy/helm/gozkd/Chart.yaml
release:  ## make the artifacts of VERSION, such as 0.1.0, from HEAD into DIST (dist); see docs/internals/releasing.md
	$(GO) run ./tools/release -version "$(VERSION)" -out "$(DIST)" $(RELEASE) .
release-try: ## install and start what make release made, from the artifacts alone; needs root, dpkg and systemd-analyze
	$(GO) test -count=1 -timeout 0 -v -run "^TestArtifacts$$" ./tools/release -dist "$(abspath $(DIST))"
.PHONY: release-check release-try
release-check: ## install and import the modules as users do after a release, from a module proxy made from HEAD and changes to it
	$(GO) test -count=1 -timeout 0 -v -run "^TestModules$$" ./tools/release -tree "$(CURDIR)"
upgrade:  ## three servers from FROM, a commit, to this tree and back, under load of other people's clients
	$(GO) run ./test/upgrade -from $(FROM) $(UPGRADE)
testkits: ## build the test kits for other languages, and test them in empty projects; TESTKITS for flags, such as -only java or -all -out DIR
	$(GO) run ./test/testkits $(TESTKITS)
chart:    ## render the Helm chart with several values, and check the objects and the configuration of each server; CHART=-update writes what values.yaml makes
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/gozkd
	GOWORK=off $(GO) test -C tools/chart -count=1 -v . $(CHART)
.PHONY: s3
s3:       ## the archive in object storage, and gozkd's programs with it, against a real S3 server, which verifies signatures
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/gozkd
	GOWORK=off CGO_ENABLED=0 $(GO) test -C tools/s3 -trimpath -count=1 -timeout 5m -v .
alerts:   ## make each alert rule true by a fault in servers, and evaluate the rules with Prometheus' own code
	GOWORK=off $(GO) test -C tools/alerts -count=1 -timeout 10m .
# Debian's package; elsewhere set BROWSER to Chromium or Chrome. The tests wait for the page, so -race, which slows only the server, is left out.
BROWSER   ?= chromium
web:      ## the explorer in headless Chromium, as a person uses it; WEB for flags, such as -run TestEdit
	command -v "$(BROWSER)" >/dev/null || { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends chromium; }
	GOZKD_BROWSER="$(BROWSER)" $(GO) test -count=1 -timeout 15m ./test/web $(WEB)
web-pictures: ## the pictures of docs/guide/rest.md
	GOZKD_PICTURES="$(CURDIR)/docs/guide/explorer" $(MAKE) web WEB='-run TestPictures'
web-axe:  ## the rules of axe-core, a package of npm, on every view of the explorer
	npm install --silent --no-save --prefix .cache/axe axe-core@4.10.3
	GOZKD_AXE="$(CURDIR)/.cache/axe/node_modules/axe-core/axe.min.js" $(MAKE) web WEB='-run TestAccessibility'
openapi:  ## check the OpenAPI files with openapi-spec-validator, a package of Python
	python3 -m openapi_spec_validator web/internal/restv2/openapi.json testkit/openapi.json
help:     ## this list
	@awk -F ':[^#]*## ' '/^[a-z-]+:.*## / {printf "%-14s %s\n", $$1, $$2}' Makefile
