package scaffold

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
)

const (
	enough = 16      // samples: of fewer the tool makes the rest
	roomy  = 2 << 20 // bytes of JSON, beyond which it makes fewer: each value is tried, and each process reads all
	tries  = 50      // at another value, and at a copy that is like no other
)

// stays matches strings whose form means something: UUIDs, times, base64 with padding.
var stays = regexp.MustCompile(`^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|` +
	`\d{4}-\d\d-\d\d.*|\d\d:\d\d(:\d\d)?|[A-Za-z0-9+/]{2,}={1,2})$`)

// copier makes copies of samples, with other letters and digits. Protobuf judges: a change is kept if its own JSON
// reads it, and if the value is as long as before.
type copier struct {
	*rand.Rand
	was map[string][2]int // lengths of samples of one value, zeros if it has no other
}

// vary returns a copy of v, which is somewhere in a sample of d: around makes such a sample of it alone.
func (c copier) vary(d protoreflect.MessageDescriptor, v any, around func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		other := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			other[key] = c.vary(d, v[key], func(inner any) any { return around(map[string]any{key: inner}) })
		}
		return other
	case []any:
		other := []any{}
		for _, element := range v {
			other = append(other, c.vary(d, element, func(inner any) any { return around([]any{inner}) }))
		}
		return other
	case json.Number, string:
		text, isText := v.(string)
		if isText && stays.MatchString(text) {
			return v
		}
		sample := string(compact(around(v)))
		was, seen := c.was[sample]
		if !seen {
			was = lengths(d, []byte(sample))
			c.was[sample] = was
		}
		for range tries {
			if was == [2]int{} {
				return v
			}
			other := any(c.exchange(text))
			if number, ok := v.(json.Number); ok {
				n := sure(number.String())
				other = json.Number(c.exchange(number.String()[:n]) + number.String()[n:])
			}
			if other != v && unsure(other) == unsure(v) && lengths(d, compact(around(other))) == was {
				return other
			}
		}
		c.was[sample] = [2]int{}
	}
	return v
}

const certain = 15 // digits: another one is another double, which of a later digit is not always so

// sure returns how long a number is up to those digits.
func sure(number string) (n int) {
	for digits := 0; n < len(number) && digits < certain; n++ {
		if c := number[n]; c >= '1' && c <= '9' || c == '0' && digits > 0 {
			digits++
		}
	}
	return n
}

// unsure are the other digits of a fraction as Go writes it. Copies share them: a reply with one digit of another reply
// has another value.
func unsure(v any) string {
	number, _ := v.(json.Number)
	if !strings.ContainsAny(number.String(), ".eE") {
		return ""
	}
	x, _ := number.Float64() // which has been read
	digits, _, _ := strings.Cut(strings.NewReplacer("-", "", ".", "").Replace(strconv.FormatFloat(x, 'e', -1, 64)), "e")
	return digits[min(certain, len(digits)):]
}

// lengths are those of a sample in protobuf and in its JSON; zeros if it is none, or if protobuf does not keep it.
func lengths(d protoreflect.MessageDescriptor, sample []byte) (is [2]int) {
	m, again := dynamicpb.NewMessage(d), dynamicpb.NewMessage(d)
	if err := (protojson.UnmarshalOptions{AllowPartial: true}).Unmarshal(sample, m); err != nil {
		return is
	}
	data, _ := proto.MarshalOptions{AllowPartial: true}.Marshal(m)
	text, err := protojson.MarshalOptions{AllowPartial: true}.Marshal(m)
	unread := proto.UnmarshalOptions{AllowPartial: true}.Unmarshal(data, again)
	if err != nil || unread != nil || !proto.Equal(m, again) {
		return is
	}
	return [2]int{len(data), len(text)}
}

// exchange exchanges letters for letters and digits for digits. The first digit of a number does not become 0.
func (c copier) exchange(s string) string {
	var out strings.Builder
	for i, r := range s {
		switch {
		case r >= 'a' && r <= 'z':
			r = 'a' + c.Int32N(26)
		case r >= 'A' && r <= 'Z':
			r = 'A' + c.Int32N(26)
		case r >= '1' && r <= '9' && (i == 0 || s[i-1] < '0' || s[i-1] > '9'):
			r = '1' + c.Int32N(9)
		case r >= '0' && r <= '9' && i > 0:
			r = '0' + c.Int32N(10)
		}
		out.WriteRune(r)
	}
	return out.String()
}

// samples are requests and the reply to each.
type samples struct {
	requests, replies []any
	made              string   // of what
	given             int      // the others are copies of these, in turn
	guessed, told     []string // of the schema, and what was changed or left out
	key               [][]*protogen.Field
}

// complete makes copies of too few samples until there are enough, and finds what tells requests apart.
func (s *samples) complete(request, reply *protogen.Message) {
	s.once()
	s.given = len(s.requests)
	invented := s.made != ""
	if !invented {
		s.made = plural(s.given, "sample", "samples")
	}
	c := copier{rand.New(rand.NewPCG(uint64(s.given), enough)), map[string][2]int{}}
	seen, size := map[string]bool{}, 0
	for i := range s.requests {
		reply := string(compact(s.replies[i]))
		seen[values(request, s.requests[i])], seen[reply] = true, true
		size += len(compact(s.requests[i])) + len(reply)
	}
	most := max(2, min(enough, roomy*s.given/size))
	fresh := func(m *protogen.Message, v any, text func(any) string) (any, bool) {
		for range tries {
			other := c.vary(m.Desc, v, func(whole any) any { return whole })
			if is := text(other); !seen[is] {
				seen[is] = true
				return other, true
			}
		}
		return nil, false
	}
	alike := "nothing tells requests apart"
	for i := 0; len(s.requests) < most; i++ {
		q, ok := fresh(request, s.requests[i%s.given], func(v any) string { return values(request, v) })
		a, also := fresh(reply, s.replies[i%s.given], func(v any) string { return string(compact(v)) })
		if ok && !also {
			alike = "nothing in the reply can vary"
		}
		if !ok || !also {
			break
		}
		s.requests, s.replies = append(s.requests, q), append(s.replies, a)
	}
	if most < enough && len(s.requests) == most {
		s.told = append(s.told, fmt.Sprintf("%d samples go round, in place of %d, as they are large", most, enough))
	}
	switch {
	case len(s.requests) == s.given || invented:
	case s.given == 1:
		s.made += ", whose letters and digits vary"
	default:
		s.made += ", and copies whose letters and digits vary"
	}
	if s.key = tellApart(request, s.requests); s.key == nil {
		s.requests, s.replies, s.given = s.requests[:1], s.replies[:1], 1
		s.made = "1 sample: " + alike + ", so a repeated reply can't be told from a new one"
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprint(n, " ", many)
}

// once leaves out requests that are repeated, with their replies: a server could not know which reply is meant.
func (s *samples) once() {
	var requests, replies []any
	seen := map[string]bool{}
	for i, q := range s.requests {
		if text := string(compact(q)); !seen[text] {
			seen[text] = true
			requests, replies = append(requests, q), append(replies, s.replies[i])
		}
	}
	if n := len(s.requests) - len(requests); n > 0 {
		s.told = append(s.told, plural(n, "reply", "replies")+" left out of calls, as one of the same request is there")
	}
	s.requests, s.replies = requests, replies
}

// scalars calls see with each scalar of a request that a key can be made of, and with the fields that lead to it. They
// are below messages, and in the first element of a list.
func scalars(m *protogen.Message, v protoreflect.Message, path []*protogen.Field, see func([]*protogen.Field, string)) {
	if slices.Contains([]string{"Struct", "Value", "ListValue"}, known(m)) { // whose values may be objects
		return
	}
	for _, f := range m.Fields {
		if !v.Has(f.Desc) || f.Desc.IsMap() || known(f.Message) != "" || unfit(f) != "" {
			continue
		}
		value, path := v.Get(f.Desc), append(slices.Clip(path), f)
		if f.Desc.IsList() {
			value = value.List().Get(0)
		}
		switch {
		case f.Message != nil:
			scalars(f.Message, value.Message(), path, see)
		case f.Desc.IsList() || !value.Equal(f.Desc.Default()): // which an absent field reads as
			see(path, fmt.Sprintf("%v", value.Interface()))
		}
	}
}

// values are the scalars of a request, as one text.
func values(m *protogen.Message, request any) (all string) {
	v, _ := sample{data: compact(request)}.read(m.Desc)
	scalars(m, v, nil, func(path []*protogen.Field, value string) { all += name(path) + "=" + value + "\n" })
	return all
}

func name(path []*protogen.Field) (all string) {
	for _, f := range path {
		all += "." + string(f.Desc.Name())
	}
	return all
}

// tellApart returns the paths of scalars that differ in any two requests: the first path that does alone, else several;
// nil if there are none.
func tellApart(request *protogen.Message, requests []any) (paths [][]*protogen.Field) {
	var order []string
	found, of := map[string][]*protogen.Field{}, make([]map[string]string, len(requests))
	for i, q := range requests {
		of[i] = map[string]string{}
		v, _ := sample{data: compact(q)}.read(request.Desc) // as before
		scalars(request, v, nil, func(path []*protogen.Field, value string) {
			name := name(path)
			if of[i][name] = value; found[name] == nil {
				found[name], order = path, append(order, name)
			}
		})
	}
	different := func(names ...string) int {
		seen := map[string]bool{}
		for _, values := range of {
			tuple := ""
			for _, name := range names {
				value, there := values[name]
				tuple += fmt.Sprintf("%t%q", there, value)
			}
			seen[tuple] = true
		}
		return len(seen)
	}
	var chosen []string
	for _, name := range order {
		if different(name) == len(of) {
			chosen = []string{name}
			break
		}
		if more := append(slices.Clip(chosen), name); different(more...) > different(chosen...) {
			chosen = more
		}
	}
	if len(of) < 2 || different(chosen...) < len(of) {
		return nil
	}
	for _, name := range chosen {
		paths = append(paths, found[name])
	}
	return paths
}
