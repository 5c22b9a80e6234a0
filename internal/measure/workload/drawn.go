package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/transport/message"
)

// Drawn is a Payload of structured messages whose sizes are those that services send. They are drawn from a log-normal
// distribution through the median and the 99th percentile of the requests in "A Cloud-Scale Characterization of Remote
// Procedure Calls" (SOSP 2023). The shape between and beyond these two is our assumption. Replies are as large.
const Drawn = rpcbench.FlexDrawn

// Of the sizes, in bytes of protobuf.
const (
	median, percentile99 = 1500, 196_000
	largest              = 500_000 // more is drawn again: JSON and XML of it would be near the limits of stacks
	draws                = 1200
)

// drawn are the sizes in the order of their calls, which is the same everywhere. cut is the share of draws that were
// larger than largest.
func drawn() (sizes []int, cut float64) {
	const z99 = 2.3263478740408408 // of the normal distribution
	sigma := math.Log(float64(percentile99)/median) / z99
	random, all := rand.New(rand.NewPCG(2023, 1)), 0
	for ; len(sizes) < draws; all++ {
		if size := math.Exp(math.Log(median) + sigma*random.NormFloat64()); size <= largest {
			sizes = append(sizes, max(1, int(size)))
		}
	}
	return sizes, float64(all-draws) / float64(all)
}

var drawnSizes = sync.OnceValues(drawn) // which are always the same

// drawnMessage is that of call i: a list of pairs, with one value of each kind where these find room.
func drawnMessage(i int) *rpcbench.Flex {
	const complex = 132 // bytes of protobuf of a complex message
	sizes, _ := drawnSizes()
	size, m := sizes[i%draws], new(rpcbench.Flex)
	if size >= complex {
		m, size = message.Complex(), size-complex
	}
	for n := i; size > 0; n++ {
		p := &rpcbench.Pair{Key: fmt.Sprintf("field-%05d", n%100_000), Value: int64(n) * 7919}
		m.First = append(m.First, p)
		size -= 17 + len7(uint64(p.Value))
	}
	return m
}

// len7 is how many bytes a varint of protobuf has.
func len7(v uint64) (n int) {
	for n = 1; v >= 1<<7; n++ {
		v >>= 7
	}
	return n
}
