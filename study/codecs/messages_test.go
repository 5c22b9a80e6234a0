package codecs_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/rpcbench/rpcbench/internal/transport/binding"
	"github.com/rpcbench/rpcbench/study/catalogue"
	"github.com/rpcbench/rpcbench/study/catalogue/cataloguepb"
	"github.com/rpcbench/rpcbench/study/codecs"
)

// wire are the message's bytes, by the library that defines them.
func wire(t *testing.T, m any) []byte {
	t.Helper()
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.(proto.Message))
	require.NoError(t, err)
	return data
}

func gzipRatio(t *testing.T, data []byte) float64 {
	t.Helper()
	if len(data) == 0 {
		return 0
	}
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	_, err := z.Write(data)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return float64(buf.Len()) / float64(len(data))
}

func TestSizesAndEntropyAreAsDeclared(t *testing.T) {
	for _, e := range codecs.Messages() {
		t.Run(e.Name, func(t *testing.T) {
			data := wire(t, rowOf(t, "protobuf").Form(e).Value)
			ratio := gzipRatio(t, data)
			t.Logf("%d bytes, gzip %.2f", len(data), ratio)
			require.Equal(t, e.Size, len(data), "bytes of protobuf")
			// A release of Go may compress otherwise by a byte or two, which is much of a message of three bytes.
			require.InDelta(t, e.Gzip, ratio, max(0.05, 2/float64(max(1, e.Size))), "size after gzip, over size")
		})
	}
}

func TestMessagesCoverTheSizes(t *testing.T) {
	smallest, largest := math.MaxInt, 0
	names := map[string]bool{}
	for _, e := range codecs.Messages() {
		require.False(t, names[e.Name], "two messages are called %s", e.Name)
		names[e.Name] = true
		if e.Size > 0 {
			smallest = min(smallest, e.Size)
		}
		largest = max(largest, e.Size)
		switch {
		case strings.HasPrefix(e.Name, "article."):
			require.InDelta(t, 0.4, e.Gzip, 0.07, "%s: text compresses as English does", e.Name)
		case e.Name == "user.10kB":
			require.GreaterOrEqual(t, e.Gzip, 0.99, "%s: bytes do not compress", e.Name)
		}
	}
	require.LessOrEqual(t, smallest, 8)
	require.Greater(t, largest, 130_000)
}

// The same bytes in every process, on every platform and with every release of Go: else rows can't be compared.
func TestMessagesComeFromASeed(t *testing.T) {
	all := sha256.New()
	for _, e := range codecs.Messages() {
		all.Write(wire(t, rowOf(t, "protobuf").Form(e).Value))
	}
	require.Equal(t, "6a2b7b0d71d22182", hex.EncodeToString(all.Sum(nil)[:8]),
		"a message has changed: earlier results are of another")
}

// Sizes that NewTree reckons with are protobuf's.
func TestTreesHaveTheirSize(t *testing.T) {
	for seed := range uint64(10) {
		for _, size := range []int{0, 30, 1000, 20_000} {
			for _, dense := range []bool{false, true} {
				got := proto.Size(binding.Convert[cataloguepb.Tree](catalogue.NewTree(seed, size, dense)))
				require.GreaterOrEqual(t, got, size, "seed %d, dense %v", seed, dense)
				require.Less(t, got, size+160, "seed %d, dense %v: the longest message", seed, dense)
			}
		}
	}
}

// forms are rows of each kind of native types.
var forms = []string{"json", "protobuf", "msgpack.generated", "xml"}

func TestFormsAreEqual(t *testing.T) {
	for _, e := range codecs.Messages() {
		for _, name := range forms {
			form := rowOf(t, name).Form(e)
			require.Empty(t, difference(e.New(), form.Value), "%s as %s", e.Name, name)
			fresh, zero := form.Fresh(), zero(form)
			require.IsType(t, form.Value, fresh, "%s as %s", e.Name, name)
			require.Empty(t, difference(zero, fresh), "%s: a fresh value has nothing in it", name)
			require.Equal(t, zero, fresh, "%s as %s: a fresh value is zero", e.Name, name)
		}
	}
}

// What a decoder's destination costs is billed to the decoder: it is what new costs.
func TestFreshIsOneAllocation(t *testing.T) {
	for _, e := range codecs.Messages() {
		for _, name := range forms {
			fresh := rowOf(t, name).Form(e).Fresh
			var v any
			require.Equal(t, 1.0, testing.AllocsPerRun(100, func() { v = fresh() }), "%s as %s", e.Name, name)
			require.NotSame(t, v, fresh(), "%s as %s", e.Name, name)
		}
	}
}
