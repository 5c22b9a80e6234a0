// The modules whose .proto files TestPublicProtos compiles. No code of theirs is in this repository.
module github.com/rpcbench/rpcbench/internal/scaffold/testdata/public

go 1.26.0

require (
	cel.dev/expr v0.25.3
	go.etcd.io/etcd/api/v3 v3.7.3
	k8s.io/cri-api v0.37.2
)
