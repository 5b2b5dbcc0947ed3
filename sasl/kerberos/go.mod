// Kerberos for SASL. A module of its own, so that programs which import gozkd do not inherit gokrb5.
module github.com/gozkd/gozkd/sasl/kerberos

go 1.26.0

require (
	github.com/gozkd/gozkd v0.1.0
	github.com/hashicorp/go-hclog v1.6.3
	github.com/jcmturner/gofork v1.7.6
	github.com/jcmturner/gokrb5/v8 v8.4.4
	golang.org/x/crypto v0.58.0
)

require (
	github.com/fatih/color v1.19.0 // indirect
	github.com/hashicorp/go-uuid v1.0.3 // indirect
	github.com/jcmturner/aescts/v2 v2.0.0 // indirect
	github.com/jcmturner/dnsutils/v2 v2.0.0 // indirect
	github.com/jcmturner/rpc/v2 v2.0.3 // indirect
	github.com/mattn/go-colorable v0.1.15 // indirect
	github.com/mattn/go-isatty v0.0.22 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
