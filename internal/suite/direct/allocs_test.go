//go:build !race

// The race detector allocates for itself, and the two sides of a call not equally.

package direct

import (
	"cmp"
	"encoding/xml"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	lib "github.com/json-iterator/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/internal/transport/codec"
	"github.com/rpcbench/rpcbench/internal/transport/codec/jsoniter"
	"github.com/rpcbench/rpcbench/internal/transport/codec/msgp"
	"github.com/rpcbench/rpcbench/internal/transport/codec/protobuf"
	"github.com/rpcbench/rpcbench/internal/transport/codec/xmlstd"
	userv1 "github.com/rpcbench/rpcbench/proto/user/v1"
)

const (
	allocCounts = 5 // at most: the median has to be right once
	allocCalls  = 500
	allocSlack  = 0.5  // allocations per call: less than one, which none of our layers can hide in
	byteSlack   = 1.01 // buffers that a library grows or pools differ a little
)

func TestAllocationsAtMostDirect(t *testing.T) {
	// A collection empties pools, and a second P has pools of its own.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			runtime.GC() // of what the tests before have left, as nothing else collects it
			direct := inTurn(t, f.direct(t, bare(), sample()))
			stack := inTurn(t, f.viaStack(t, nil, sample()))
			var directCounts, stackCounts counts
			var directAllocs, stackAllocs, directBytes, stackBytes float64
			for n, alike := 0, false; n < allocCounts && !alike; n++ {
				directCounts.add(t, direct)
				stackCounts.add(t, stack)
				directAllocs, stackAllocs = median(directCounts.allocs), median(stackCounts.allocs)
				directBytes, stackBytes = median(directCounts.bytes), median(stackCounts.bytes)
				alike = math.Abs(stackAllocs-directAllocs) <= allocSlack && stackBytes <= directBytes*byteSlack
			}
			t.Logf("direct %.2f allocs, %.1f B per call; %s %.2f allocs, %.1f B", directAllocs, directBytes, f.name, stackAllocs,
				stackBytes)
			assert.LessOrEqual(t, stackAllocs, directAllocs+allocSlack, "allocations per call, against the direct form's")
			assert.GreaterOrEqual(t, stackAllocs, directAllocs-allocSlack, "fewer would be tuning, which is a row of its own")
			assert.LessOrEqual(t, stackBytes, directBytes*byteSlack, "bytes allocated per call, against the direct form's")
		})
	}
}

// TestCodecsAllocateAsTheirLibraries: the codecs of stacks without a direct form add nothing to their libraries.
func TestCodecsAllocateAsTheirLibraries(t *testing.T) {
	u := rpcbench.SampleUser(1, 0)
	generated := binding.Convert[userv1.User](&u)
	api := lib.ConfigCompatibleWithStandardLibrary
	for _, c := range []struct {
		named  string // its content type
		codec  codec.Codec
		user   any
		fresh  func() any
		direct func(from, to any) error // encodes, and decodes, as the codec's own package does
	}{
		{"application/json", jsoniter.Compatible(), &u, func() any { return new(rpcbench.User) }, func(from, to any) error {
			data, err := api.Marshal(from)
			return cmp.Or(err, api.Unmarshal(data, to))
		}},
		{"application/vnd.msgpack", msgp.Codec{}, (*msgp.User)(&u), func() any { return new(msgp.User) },
			func(from, to any) error {
				data, err := from.(*msgp.User).MarshalMsg(nil)
				_, again := to.(*msgp.User).UnmarshalMsg(data)
				return cmp.Or(err, again)
			}},
		{"application/protobuf", protobuf.Codec{}, generated, func() any { return new(userv1.User) },
			func(from, to any) error {
				data, err := proto.Marshal(from.(*userv1.User))
				return cmp.Or(err, proto.Unmarshal(data, to.(*userv1.User)))
			}},
		{"application/xml; charset=utf-8", xmlstd.Codec{}, binding.Convert[xmlstd.User](&u),
			func() any { return new(xmlstd.User) }, func(from, to any) error {
				data, err := xml.Marshal(from)
				return cmp.Or(err, xml.Unmarshal(data, to))
			}},
	} {
		least := func(exchange func(from, to any) error) float64 { // encoding/xml keeps types in a map of the process
			n := math.Inf(1)
			for range 100 {
				n = min(n, testing.AllocsPerRun(1, func() { require.NoError(t, exchange(c.user, c.fresh())) }))
			}
			return n
		}
		require.Equal(t, c.named, c.codec.ContentType())
		require.Equal(t, least(c.direct), least(func(from, to any) error {
			data, err := c.codec.Marshal(from)
			return cmp.Or(err, c.codec.Unmarshal(data, to))
		}), "allocations of %s", c.named)
	}
}

// counts are per call, of the whole process: client and server.
type counts struct{ allocs, bytes []float64 }

func (c *counts) add(t *testing.T, op func() error) {
	t.Helper()
	since := workload.Allocated()
	for range allocCalls {
		if err := op(); err != nil {
			require.NoError(t, err)
		}
	}
	bytes, allocs := since()
	c.allocs = append(c.allocs, float64(allocs)/allocCalls)
	c.bytes = append(c.bytes, float64(bytes)/allocCalls)
}

func median(all []float64) float64 { return slices.Sorted(slices.Values(all))[len(all)/2] }
