package scaffold

import (
	"context"
	_ "embed" // of a .proto
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/rpcbench/rpcbench/internal/measure/workload"
	"github.com/rpcbench/rpcbench/internal/shell"
)

// inventedProto describes a call whose messages have strings, numbers, lists and nesting.
//
//go:embed made.proto
var inventedProto []byte

// invent makes a call of structured data of the two sizes as JSON.
func (c *call) invent(ctx context.Context, s *samples) (all files, requests, replies []sample, err error) {
	for _, of := range []struct {
		flag, size string
		to         *[]sample
	}{{"-request-size", c.RequestSize, &requests}, {"-reply-size", c.ReplySize, &replies}} {
		n, err := workload.Size(of.size)
		if err != nil {
			return nil, nil, nil, err
		}
		v, err := inventedValue(n)
		if err != nil {
			return nil, nil, nil, shell.Wrong("%s %s: %w", of.flag, of.size, err)
		}
		*of.to = []sample{{compact(v), of.flag}}
	}
	s.made = fmt.Sprintf("structured data of %s and %s, made", spaced(c.RequestSize), spaced(c.ReplySize))
	c.Call = "made.Data/Get"
	all, err = compile(ctx, inventedProto, []string{"made.proto"}, nil)
	return all, requests, replies, err
}

func spaced(size string) string {
	return strings.TrimSpace(regexp.MustCompile(`[kM]?B$`).ReplaceAllString(size, " $0"))
}

// inventedValue is a message of so many bytes of JSON: as many records as there is space for, and a longer id.
func inventedValue(size int) (any, error) {
	record := func(n int) any {
		words := []string{"account", "balance", "customer", "delivery", "exchange", "forecast", "guarantee"}
		word := func(i int) string { return words[(n+i)%len(words)] }
		number := func(format string, n int) json.Number { return json.Number(fmt.Sprintf(format, n)) }
		return map[string]any{
			"name": word(0) + " " + word(3), "number": number("%d", 100000+7919*n%899999), "amount": number("%d.25", 10+n%89),
			"active": true, "tags": []any{word(1), word(2)},
			"place": map[string]any{"city": word(4), "code": number("%d", 10000+n%89999)},
		}
	}
	const id = "order-4711"
	message := map[string]any{
		"id": id, "number": json.Number("4711"),
		"place": map[string]any{"city": "exchange", "code": json.Number("10115")},
	}
	length := len(compact(message))
	if size < length {
		return nil, fmt.Errorf("structured data takes %d bytes at least", length)
	}
	var records []any
	for n := 0; ; n++ {
		more := len(compact(record(n))) + len(",")
		if n == 0 {
			more = len(compact(record(n))) + len(`,"records":[]`)
		}
		if length+more > size {
			break
		}
		records, length = append(records, record(n)), length+more
	}
	if records != nil {
		message["records"] = records
	}
	message["id"] = id + strings.Repeat("x", size-length)
	if size >= largest {
		return nil, fmt.Errorf("2 MiB or more: %s", tooLarge)
	}
	return message, nil
}
