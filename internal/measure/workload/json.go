package workload

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rpcbench/rpcbench"
	"github.com/rpcbench/rpcbench/internal/suite/corpus"
)

// OtherJSON says how the JSON that a stack sends differs from that of a base. It returns "" if it doesn't, or if one of
// the two sends no JSON. Values are compared, and not text: a number may be written in two ways, and a missing key is a
// difference. Of protobuf's own JSON it says that it is another. Only the messages of a method of one's own are looked
// at, and if its Handle varies its answers, only requests.
func OtherJSON(ctx context.Context, base, stack rpcbench.Stack) (differs string, err error) {
	of := func(s rpcbench.Stack) bool { return strings.Contains(s.Protocol, "json") }
	protobufs := func(s rpcbench.Stack) bool { return strings.HasPrefix(s.Traits.Codec, "google.golang.org/protobuf") }
	switch {
	case !of(base) || !of(stack) || protobufs(base) && protobufs(stack):
		return "", nil
	case protobufs(base) || protobufs(stack):
		name := base.Name
		if protobufs(stack) {
			name = stack.Name
		}
		return name + " writes protobuf's own JSON, which isn't that of plain structs", nil
	case base.Serves == "" || base.Serves != stack.Serves:
		return "", nil
	}
	theirs, err := jsonOf(ctx, base)
	if err != nil {
		return "", err
	}
	own, err := jsonOf(ctx, stack)
	if err != nil {
		return "", err
	}
	c := changes{base.Name, map[string]string{}}
	for i := range corpus.Round {
		c.between("request", theirs.requests[i], own.requests[i])
		if theirs.replies != nil && own.replies != nil {
			c.between("reply", theirs.replies[i], own.replies[i])
		}
	}
	if len(c.found) == 0 {
		return "", nil
	}
	return stack.Name + " sends other JSON than " + base.Name + ": " + c.String(), nil
}

// sent are the messages of a round, decoded from JSON. There are no replies if these vary.
type sent struct{ requests, replies []any }

func jsonOf(ctx context.Context, s rpcbench.Stack) (all sent, err error) {
	f, err := rpcbench.Start(ctx, s, rpcbench.Config{})
	if err != nil {
		return all, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	client, err := rpcbench.As[rpcbench.MethodClient](f)
	if err != nil {
		return all, err
	}
	requests, replies := client.Messages()
	again, handles := f.Client.(interface{ Again(i int) ([]byte, error) })
	vary := false
	for i := 0; handles && i < corpus.Round && !vary; i++ {
		now, err := again.Again(i)
		then, err2 := replies.Sorted(i)
		if err := cmp.Or(err, err2); err != nil {
			return all, err
		}
		vary = !bytes.Equal(now, then)
	}
	if all.requests, err = decoded(requests); err == nil && !vary {
		all.replies, err = decoded(replies)
	}
	return all, err
}

// decoded are a round's messages as values, whose numbers are as they were written.
func decoded(m rpcbench.Messages) (all []any, err error) {
	for i := range corpus.Round {
		text, err := m.Encode(i)
		if err != nil {
			return nil, err
		}
		value, err := valueOf(text)
		if err != nil {
			return nil, fmt.Errorf("what is sent as JSON is none: %w", err)
		}
		all = append(all, value)
	}
	return all, nil
}

func valueOf(text []byte) (value any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return value, d.Decode(&value)
}

// changes notes by its path, without the places in lists, how a value differs from that of a base: the first of each.
type changes struct {
	base  string
	found map[string]string
}

// String names three paths at most.
func (c changes) String() string {
	const most = 3
	var said []string
	for _, path := range slices.Sorted(maps.Keys(c.found)) {
		said = append(said, c.found[path])
	}
	if more := len(said) - most; more > 0 {
		said = append(said[:most], fmt.Sprintf("%d more differ", more))
	}
	return strings.Join(said, "; ")
}

// between notes the differences of two values that stand at a path.
func (c changes) between(path string, theirs, own any) {
	switch theirs := theirs.(type) {
	case map[string]any:
		if own, same := own.(map[string]any); same {
			for key := range theirs {
				if value, there := own[key]; there {
					c.between(path+"."+key, theirs[key], value)
				} else {
					c.note(path+"."+key, "is left out, and %s writes %s", c.base, short(theirs[key]))
				}
			}
			for key, value := range own {
				if _, there := theirs[key]; !there {
					c.note(path+"."+key, "is %s, and %s leaves it out", short(value), c.base)
				}
			}
			return
		}
	case []any:
		if own, same := own.([]any); same {
			for i := range min(len(theirs), len(own)) {
				c.between(path+"[]", theirs[i], own[i])
			}
			if len(theirs) != len(own) {
				c.note(path, "has %d elements, and %d with %s", len(own), len(theirs), c.base)
			}
			return
		}
	case json.Number:
		if own, same := own.(json.Number); same && canonical(theirs.String()) == canonical(own.String()) {
			return
		}
	default:
		if theirs == own {
			return
		}
	}
	c.note(path, "is %s, and %s writes %s", short(own), c.base, short(theirs))
}

func (c changes) note(path, format string, args ...any) {
	if c.found[path] == "" {
		c.found[path] = path + " " + fmt.Sprintf(format, args...)
	}
}

// short is a value as JSON writes it, or the beginning of a long one.
func short(value any) string {
	const most = 40
	text, _ := json.Marshal(value) // of what was decoded
	if letters := []rune(string(text)); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return string(text)
}

// canonical is the one way to write a number of JSON that all others of the same value have, such as 1e-7 of 1e-07 and
// 0.00000010.
func canonical(number string) string {
	number, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	number, negative := strings.CutPrefix(number, "-")
	whole, fraction, _ := strings.Cut(number, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	power, _ := strconv.Atoi(exponent) // 0 without one
	shortest := strings.TrimRight(digits, "0")
	power += len(digits) - len(shortest) - len(fraction)
	if negative {
		shortest = "-" + shortest
	}
	return shortest + "e" + strconv.Itoa(power)
}
