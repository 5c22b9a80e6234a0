package stacktest

import (
	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/fixture"
)

func prepare(f *rpcbench.Fixture, avatar int) ([]rpcbench.Call, error) {
	return fixture.Calls(f, avatar)
}

func prepareOne(f *rpcbench.Fixture, u rpcbench.User) (rpcbench.Call, error) {
	return fixture.Call(f, u)
}
