package scaffold

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

// sample is one JSON value of the user's, as it stands in its file.
type sample struct {
	data []byte // one JSON value
	name string // where it is, for messages: "reply.json", "replies.jsonl:3"
}

// schema is the .proto that a person would write for samples.
type schema struct {
	text              []byte   // the .proto
	requests, replies []sample // as given, but for top-level arrays, which became {"items": [...]}
	told              []string // one line each: what costs, or changes
}

const (
	wellKnown      = "google.protobuf."
	anyValue       = wellKnown + "Value"
	deepestMessage = 25  // levels: protoc refuses 32
	manyKeys       = 100 // with values of one kind: no message has so many such fields
	manyObjects    = 8   // keys with objects of one shape
)

// infer returns the text of a .proto with one service, made.Samples, whose method Call takes requests and returns
// replies, and the samples as that .proto has them.
func infer(requests, replies []sample) (s *schema, err error) {
	var in inference
	var q, a []node
	s = new(schema)
	if s.requests, q, err = in.read("request", requests); err != nil {
		return nil, err
	}
	if s.replies, a, err = in.read("reply", replies); err != nil {
		return nil, err
	}
	messages := in.message("Request", "request", q, 0) + "\n" + in.message("Reply", "reply", a, 0)
	const shown = 10
	s.told = slices.Concat(in.changed, in.dynamic)
	if more := len(s.told) - shown; more > 0 {
		s.told = append(s.told[:shown], fmt.Sprintf("and %d more", more))
	}
	text := fmt.Sprintf("// Made by rpcbench of samples (requests: %d, replies: %d).\n", len(requests), len(replies)) +
		"// To go on: edit it, and pass it to -proto with -call made.Samples/Call.\n\nsyntax = \"proto3\";\n\npackage made;\n"
	if strings.Contains(messages, wellKnown) {
		text += "\nimport \"google/protobuf/struct.proto\";\n"
	}
	s.text = []byte(text + "\nservice Samples {\n  rpc Call(Request) returns (Reply);\n}\n\n" + messages)
	return s, nil
}

// node is a value of a sample.
type node struct {
	kind   string   // null, bool, number, string, array or object
	number string   // as it stands
	keys   []string // of an object, in its order
	values []node   // of an object or an array
	from   string   // the sample's name
}

// inference has what is told.
type inference struct {
	changed []string // arrays at the top
	dynamic []string // what became Value, ListValue or Struct
}

// read returns the samples of one side, and the objects in them.
func (in *inference) read(path string, given []sample) (kept []sample, objects []node, err error) {
	var array, other string // the last sample of each
	for _, s := range given {
		top, err := s.parsed(path)
		switch {
		case err != nil:
			return nil, nil, fmt.Errorf("%s: %w", s.name, err)
		case top.kind == "array":
			array = s.name
			s.data = slices.Concat([]byte(`{"items":`), s.data, []byte("}"))
			top = node{kind: "object", keys: []string{"items"}, values: []node{top}, from: s.name}
		case top.kind == "object":
			other = s.name
		default:
			return nil, nil, fmt.Errorf("%s: %s at the top: a message is an object or an array", s.name,
				brief(json.RawMessage(s.data)))
		}
		if array != "" && other != "" {
			return nil, nil, fmt.Errorf("%s has an object at the top, and %s an array: make each %s one or the other",
				other, array, path)
		}
		if i := slices.IndexFunc(top.keys, unnamable); i >= 0 {
			return nil, nil, fmt.Errorf("%s: %s: no field can have this key: rename it", s.name, below(path, top.keys[i]))
		}
		kept, objects = append(kept, s), append(objects, top)
	}
	if array != "" {
		in.changed = append(in.changed, path+": an array at the top became the key items, which JSON then has too")
	}
	return kept, objects, nil
}

func (s sample) parsed(path string) (n node, err error) {
	var syntax *json.SyntaxError
	d := json.NewDecoder(bytes.NewReader(s.data))
	d.UseNumber()
	switch {
	case errors.As(json.Unmarshal(s.data, new(json.RawMessage)), &syntax):
		return n, fmt.Errorf("no JSON value, at byte %d: %w", syntax.Offset, syntax)
	}
	if n, err = s.node(d, path); err == nil && protojson.Unmarshal(s.data, new(structpb.Value)) != nil {
		err = errors.New("half of a surrogate pair in a string, which protobuf refuses")
	}
	return n, err
}

// node reads a value of valid JSON.
func (s sample) node(d *json.Decoder, path string) (node, error) {
	token, err := d.Token()
	n := node{kind: fmt.Sprintf("%T", token), from: s.name}
	switch token := token.(type) {
	case nil:
		n.kind = "null"
	case json.Number:
		n.kind, n.number = "number", token.String()
		if _, err := token.Float64(); err != nil {
			return n, fmt.Errorf("%s: %s is beyond a double", path, brief(token))
		}
	case json.Delim:
		n.kind = map[json.Delim]string{'[': "array", '{': "object"}[token]
		seen := map[string]bool{}
		for d.More() {
			at := path + "[]"
			if token == '{' {
				token, _ := d.Token()
				key, _ := token.(string)
				if at = below(path, key); seen[key] {
					return n, fmt.Errorf("%s: this key is twice in one object", at)
				}
				seen[key], n.keys = true, append(n.keys, key)
			}
			v, err := s.node(d, at)
			if err != nil {
				return n, err
			}
			n.values = append(n.values, v)
		}
		_, err = d.Token()
	}
	return n, err
}

var plainKey = regexp.MustCompile(`^[\pL\pN_@$+:/-]+$`)

// below is the path of an object's value.
func below(path, key string) string {
	if !plainKey.MatchString(key) {
		key = brief(key)
	}
	return path + "." + key
}

// unnamable says whether no field can have a key: protobuf's JSON reads [key] as an extension, and a tag "-" is none.
func unnamable(key string) bool {
	return !fitsTag(key) || key == "-" || key[0] == '[' && key[len(key)-1] == ']'
}

// message returns the text of a message and of those within.
func (in *inference) message(name, path string, objects []node, depth int) string {
	indent, g := strings.Repeat("  ", depth), grouped(objects)
	if len(g.keys) == 0 {
		return indent + "message " + name + " {}\n"
	}
	var text, within strings.Builder
	text.WriteString(indent + "message " + name + " {\n")
	indent += "  "
	names := g.names()
	for i, key := range g.keys {
		camel, values := camelCase(names[key]), g.of[key]
		typeName := strings.ToUpper(camel[:1]) + camel[1:]
		if strings.HasSuffix(typeName, "Entry") {
			typeName += "_" // protobuf makes such names of maps
		}
		typ, note, nested := in.typed(below(path, key), typeName, values, true, depth+1)
		var missing []string
		if absent := len(objects) - len(values); absent > 0 {
			missing = append(missing, fmt.Sprintf("absent in %d of %d", absent, len(objects)))
		}
		if nulls := len(values) - len(some(values)); nulls > 0 && typ != anyValue {
			missing = append(missing, fmt.Sprintf("null in %d of %d", nulls, len(objects)))
		}
		if missing != nil && !strings.HasPrefix(typ, "repeated ") && !strings.HasPrefix(typ, "map<") {
			missing[0] = "optional: " + missing[0]
			if typ != typeName {
				typ = "optional " + typ
			}
		}
		number, option := i+1, ""
		if number >= 19000 {
			number += 1000 // which protobuf reserves
		}
		if camel != key {
			option = fmt.Sprintf(" [json_name = %q]", key)
		}
		for _, line := range []string{strings.Join(missing, ", "), note} {
			if line != "" {
				text.WriteString(indent + "// " + line + "\n")
			}
		}
		fmt.Fprintf(&text, "%s%s %s = %d%s;\n", indent, typ, names[key], number, option)
		if nested != "" {
			within.WriteString("\n" + nested)
		}
	}
	return text.String() + within.String() + indent[2:] + "}\n"
}

// typed returns the type of a field. Values that are not alone are a list's elements or a map's values. name is for the
// message that they may need, whose text is nested.
func (in *inference) typed(path, name string, all []node, alone bool, depth int) (typ, note, nested string) {
	dynamic := func(typ, why, where string) (string, string, string) {
		in.dynamic = append(in.dynamic, path+": "+wellKnown+typ+": "+why+where)
		return wellKnown + typ, why, ""
	}
	mixed := func() (string, string, string) {
		var counts []string
		kinds := tallied(all)
		for _, k := range kinds {
			counts = append(counts, fmt.Sprintf("%s in %d", k.kind, k.n))
		}
		return dynamic("Value", strings.Join(counts, ", "), " ("+kinds[len(kinds)-1].from+")")
	}
	values := some(all)
	kinds, nulls := tallied(values), len(all)-len(values)
	switch {
	case len(kinds) == 0 && nulls > 0:
		return dynamic("Value", "always null", "")
	case len(kinds) == 0:
		return dynamic("Value", "always empty", "")
	case len(kinds) > 1 || nulls > 0 && !alone:
		return mixed()
	}
	g := grouped(values)
	why := g.mapped(alone)
	i := slices.IndexFunc(g.keys, unnamable)
	switch kind := kinds[0].kind; {
	case kind == "number":
		return number(values), "", ""
	case kind == "array" && !alone:
		of := "list"
		if strings.HasSuffix(path, "{}") {
			of = "map"
		}
		return dynamic("ListValue", "a "+of+" of lists", "")
	case kind == "array":
		before := *in
		typ, note, nested = in.typed(path+"[]", name, inside(values), false, depth)
		if nulls > 0 && typ == anyValue { // protojson refuses null for a list of Value
			*in = before
			return mixed()
		}
		return "repeated " + typ, note, nested
	case kind != "object":
		return kind, "", ""
	case len(g.keys) == 0:
		return dynamic("Value", "always empty", "")
	case why != "" && !alone:
		return dynamic("Struct", why, "")
	case why != "":
		typ, note, nested = in.typed(path+"{}", name, inside(values), false, depth)
		return "map<string, " + typ + ">", strings.TrimSuffix("a map: "+why+"; "+note, "; "), nested
	case i >= 0:
		return dynamic("Value", "no field can have the key "+brief(g.keys[i]), " ("+g.of[g.keys[i]][0].from+")")
	case depth > deepestMessage:
		return dynamic("Value", fmt.Sprintf("below %d messages", deepestMessage), "")
	}
	return name, "", in.message(name, path, values, depth)
}

// number is the type of numbers.
func number(all []node) string {
	signed, unsigned := true, true
	for _, n := range all {
		_, err := strconv.ParseInt(n.number, 10, 64)
		signed = signed && err == nil
		_, err = strconv.ParseUint(n.number, 10, 64)
		unsigned = unsigned && err == nil
	}
	switch {
	case signed:
		return "int64"
	case unsigned:
		return "uint64"
	}
	return "double"
}

// tally counts values of a kind.
type tally struct {
	kind string
	n    int
	from string // the first one's sample
}

// tallied counts values by kinds, the most frequent first.
func tallied(all []node) (kinds []tally) {
	for _, n := range all {
		i := slices.IndexFunc(kinds, func(k tally) bool { return k.kind == n.kind })
		if i < 0 {
			i, kinds = len(kinds), append(kinds, tally{n.kind, 0, n.from})
		}
		kinds[i].n++
	}
	slices.SortStableFunc(kinds, func(a, b tally) int { return b.n - a.n })
	return kinds
}

// some are the values but for nulls.
func some(all []node) []node {
	return slices.DeleteFunc(slices.Clone(all), func(n node) bool { return n.kind == "null" })
}

// inside are the values of all arrays or objects.
func inside(all []node) (values []node) {
	for _, n := range all {
		values = append(values, n.values...)
	}
	return values
}

// group has objects by their keys.
type group struct {
	keys   []string // in the order of their first appearance
	of     map[string][]node
	values []node
	filled int // objects that have a key
}

func grouped(objects []node) *group {
	g := &group{of: map[string][]node{}, values: inside(objects)}
	for _, o := range objects {
		for i, key := range o.keys {
			if g.of[key] == nil {
				g.keys = append(g.keys, key)
			}
			g.of[key] = append(g.of[key], o.values[i])
		}
		g.filled += min(1, len(o.keys))
	}
	return g
}

// own are the keys that are not in each of the filled objects.
func (g *group) own() []string {
	return slices.DeleteFunc(slices.Clone(g.keys), func(key string) bool { return len(g.of[key]) == g.filled })
}

var (
	// idKey matches numbers, dates, times, versions, addresses of e-mail, hex and UUIDs.
	idKey = regexp.MustCompile(`^(\d[\d.,:/TZ+-]*|v?\d+(\.\d+)+[-+.\w]*|[^@\s]+@[^@\s]+\.\w+|` +
		`[[:xdigit:]]{8,}(-[[:xdigit:]]+)*)$`)
	dataKey    = regexp.MustCompile(idKey.String() + `|.[./:].`) // paths and dotted names too
	identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)
)

// mapped says why objects are a map; "" if they are a message. That keys differ is a reason only if differ says so.
func (g *group) mapped(differ bool) string {
	kinds := tallied(some(g.values))
	if len(g.keys) == 0 || len(kinds) > 1 {
		return ""
	}
	own := g.own()
	if len(own) == 0 {
		own = g.keys
	}
	common := len(g.keys) - len(own)
	count := func(is func(key string) bool) (n int) {
		for _, key := range own {
			if is(key) {
				n++
			}
		}
		return n
	}
	once := count(func(key string) bool { return len(g.of[key]) == 1 })
	switch {
	case common < len(own) && count(idKey.MatchString) == len(own):
		return "its keys are ids"
	case differ && len(g.keys) >= manyKeys:
		return "its keys are many"
	case !differ || !alike(g.values):
		return ""
	case len(g.keys) >= manyObjects && len(kinds) > 0 && kinds[0].kind == "object":
		return "its keys are many"
	case g.filled == 1 && 2*count(dataKey.MatchString) >= len(own):
		return "its keys look like data"
	case g.filled > 1 && len(own) > 1 && common < len(own) && 2*once >= len(own) &&
		(common == 0 || count(identifier.MatchString) < len(own)):
		return "its keys differ between samples"
	}
	return ""
}

// alike says whether values have one shape: objects have half of their keys in common.
func alike(all []node) bool {
	kinds := tallied(some(all))
	if len(kinds) != 1 {
		return len(kinds) == 0
	}
	if kinds[0].kind == "array" {
		return alike(inside(all))
	}
	g := grouped(all) // empty for scalars
	return 2*(len(g.keys)-len(g.own()))*g.filled >= len(g.values)
}

var (
	newWord    = regexp.MustCompile(`([a-z0-9])([A-Z])|([A-Z])([A-Z](?:[a-rt-z]|s[a-z]))`) // of IDs the s is none
	between    = regexp.MustCompile(`[^a-z0-9]+`)
	underscore = regexp.MustCompile(`_.`)
)

func camelCase(name string) string {
	return underscore.ReplaceAllStringFunc(name, func(s string) string { return strings.ToUpper(s[1:]) })
}

func snakeCase(key string) string {
	const longest = 40
	name := strings.ToLower(newWord.ReplaceAllString(key, "${1}${3}_$2$4"))
	name = strings.TrimLeft(between.ReplaceAllString(name, "_"), "_")
	if name == "" || name[0] <= '9' {
		name = "key_" + name
	}
	return strings.TrimRight(name[:min(len(name), longest)], "_")
}

// names are those of a message's fields by their keys. Without underscores no two are equal, so that they differ in
// JSON and in Go too, and no name is the key of another field.
func (g *group) names() map[string]string {
	names, tried := map[string]string{}, map[string]int{}
	taken := map[string]bool{"protoreflect": true} // a method, which protoc-gen-go forgets
	for _, own := range []bool{true, false} {      // first the keys that are names already
		for _, key := range g.keys {
			base := snakeCase(key)
			if own != (base == key) {
				continue
			}
			name := base
			for taken[strings.ReplaceAll(name, "_", "")] {
				tried[base] = max(2, tried[base]+1)
				name = fmt.Sprint(base, "_", tried[base])
			}
			names[key], taken[strings.ReplaceAll(name, "_", "")] = name, true
		}
	}
	return names
}
