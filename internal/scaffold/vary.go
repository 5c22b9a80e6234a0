package scaffold

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	enough = 16  // samples: of fewer the tool makes the rest
	tries  = 100 // at a copy that is like no other
)

// stays matches strings whose form means something: UUIDs, times, base64 with padding.
var stays = regexp.MustCompile(`^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|` +
	`\d{4}-\d\d-\d\d.*|\d\d:\d\d(:\d\d)?|[A-Za-z0-9+/]{2,}={1,2})$`)

// vary replaces a scalar by another whose encoded length is the same in every format.
func vary(random *rand.Rand, l leaf) any {
	s, ok := asNumber(l.value)
	if !ok {
		return l.value
	}
	switch l.kind {
	case protoreflect.StringKind:
		if stays.MatchString(s) {
			return l.value
		}
		return exchange(random, s)
	case protoreflect.BoolKind, protoreflect.BytesKind, protoreflect.EnumKind:
		return l.value
	}
	for range tries {
		other := digits(random, s)
		same := false
		if l.kind == protoreflect.FloatKind || l.kind == protoreflect.DoubleKind {
			same = plainFloat(l.kind, s) && plainFloat(l.kind, other)
		} else {
			had, _ := number(l.kind, s)
			has, err := number(l.kind, other)
			same = err == nil && has == had
		}
		if same {
			if _, ok := l.value.(string); ok {
				return other
			}
			return json.Number(other)
		}
	}
	return l.value
}

// plainFloat says whether Go writes the number as it stands.
func plainFloat(kind protoreflect.Kind, s string) bool {
	x, err := strconv.ParseFloat(s, 64)
	value := any(x)
	if kind == protoreflect.FloatKind {
		x, err = strconv.ParseFloat(s, 32)
		value = float32(x)
	}
	data, _ := json.Marshal(value)
	return err == nil && string(data) == s
}

// exchange exchanges letters for letters and digits for digits. The first digit of a number does not become 0.
func exchange(random *rand.Rand, s string) string {
	var out strings.Builder
	for i, r := range s {
		switch {
		case r >= 'a' && r <= 'z':
			r = 'a' + random.Int32N(26)
		case r >= 'A' && r <= 'Z':
			r = 'A' + random.Int32N(26)
		case r >= '1' && r <= '9' && (i == 0 || s[i-1] < '0' || s[i-1] > '9'):
			r = '1' + random.Int32N(9)
		case r >= '0' && r <= '9' && i > 0:
			r = '0' + random.Int32N(10)
		}
		out.WriteRune(r)
	}
	return out.String()
}

// digits exchanges the digits of a number outside of its exponent.
func digits(random *rand.Rand, s string) string {
	end := strings.IndexAny(s+"e", "eE")
	return exchange(random, s[:end]) + s[end:]
}

// samples are requests and the reply to each.
type samples struct {
	requests, replies []any
	made              string // of what
	key               [][]*protogen.Field
}

// complete makes copies of too few samples until there are enough, and finds what tells requests apart.
func (s *samples) complete(w *walker, request, reply *protogen.Message) {
	s.once()
	given := len(s.requests)
	invented := s.made != ""
	switch {
	case invented:
	case given == 1:
		s.made = "1 sample"
	default:
		s.made = fmt.Sprintf("%d samples", given)
	}
	if given < enough {
		random := rand.New(rand.NewPCG(uint64(given), enough))
		seen := map[string]bool{}
		for i := range given {
			seen["q"+string(compact(s.requests[i]))], seen["a"+string(compact(s.replies[i]))] = true, true
		}
		copyOf := func(kind string, m *protogen.Message, v any) (any, bool) {
			for range tries {
				other := w.walk(m, v, func(l leaf) any { return vary(random, l) })
				if text := kind + string(compact(other)); !seen[text] {
					seen[text] = true
					return other, true
				}
			}
			return nil, false
		}
		for i := 0; len(s.requests) < enough; i++ {
			q, fresh := copyOf("q", request, s.requests[i%given])
			a, alsoFresh := copyOf("a", reply, s.replies[i%given])
			if !fresh || !alsoFresh {
				break
			}
			s.requests, s.replies = append(s.requests, q), append(s.replies, a)
		}
		switch {
		case len(s.requests) == given || invented:
		case given == 1:
			s.made += ", whose letters and digits vary"
		default:
			s.made += ", and copies whose letters and digits vary"
		}
	}
	if s.key = s.tellApart(w, request); s.key == nil {
		s.requests, s.replies = s.requests[:1], s.replies[:1]
		s.made += "; nothing tells requests apart, so a repeated reply can't be told from a new one"
	}
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
	s.requests, s.replies = requests, replies
}

// walk returns a copy of a sample whose scalars are replaced.
func (w *walker) walk(m *protogen.Message, v any, replace func(leaf) any) any {
	d := json.NewDecoder(strings.NewReader(string(compact(v))))
	d.UseNumber()
	var other any
	_ = d.Decode(&other) // which was encoded
	w.leaf = replace
	_ = w.message(m, other, "", []*protogen.Field{}) // which fitted before
	w.leaf, w.later = nil, nil
	return other
}

// tellApart returns the paths of scalars that differ in any two requests: the first path that does alone, else several;
// nil if there are none.
func (s *samples) tellApart(w *walker, request *protogen.Message) (paths [][]*protogen.Field) {
	if len(s.requests) < 2 {
		return nil
	}
	var order []string
	byName, values := map[string][]*protogen.Field{}, make([]map[string]string, len(s.requests))
	for i, q := range s.requests {
		values[i] = map[string]string{}
		w.walk(request, q, func(l leaf) any {
			if l.path == nil || knownType(l.field) != "" {
				return l.value
			}
			var name strings.Builder
			for _, f := range l.path {
				name.WriteString("." + string(f.Desc.Name()))
			}
			if _, ok := byName[name.String()]; !ok {
				byName[name.String()] = slices.Clone(l.path)
				order = append(order, name.String())
			}
			values[i][name.String()] = string(compact(l.value))
			return l.value
		})
	}
	different := func(names []string) int {
		seen := map[string]bool{}
		for _, of := range values {
			tuple := ""
			for _, name := range names {
				tuple += of[name] + "\n"
			}
			seen[tuple] = true
		}
		return len(seen)
	}
	for _, name := range order {
		if different([]string{name}) == len(values) {
			return [][]*protogen.Field{byName[name]}
		}
	}
	var chosen []string
	for _, name := range order {
		if more := append(slices.Clip(chosen), name); different(more) > max(1, different(chosen)) {
			chosen = more
		}
	}
	if different(chosen) < len(values) {
		return nil
	}
	for _, name := range chosen {
		paths = append(paths, byName[name])
	}
	return paths
}
