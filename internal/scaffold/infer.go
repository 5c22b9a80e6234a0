package scaffold

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

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
	deepestMessage = 25  // levels: protoc refuses 32
	manyScalars    = 100 // keys: no message has so many fields of one type
	manyObjects    = 8   // keys with objects of one shape
)

// infer returns the text of a .proto with one service, made.Samples, whose method Call takes requests and returns
// replies, and the samples as that .proto has them.
func infer(requests, replies []sample) (s *schema, err error) {
	var in inference
	var q, a []located
	s = new(schema)
	if s.requests, q, err = in.objects("request", requests); err != nil {
		return nil, err
	}
	if s.replies, a, err = in.objects("reply", replies); err != nil {
		return nil, err
	}
	messages := in.message("Request", "request", q, 0) + "\n" + in.message("Reply", "reply", a, 0)
	lines := slices.Concat(in.rounded, in.dynamic)
	const shown = 10
	if more := len(lines) - shown; more > 0 {
		lines = append(lines[:shown], fmt.Sprintf("and %d more", more))
	}
	s.told = append(in.arrays, lines...)
	text := fmt.Sprintf("// Made by rpcbench of samples (requests: %d, replies: %d).\n", len(requests), len(replies)) +
		"// To go on: edit it, and pass it to -proto with -call made.Samples/Call.\n\nsyntax = \"proto3\";\n\npackage made;\n"
	if strings.Contains(messages, wellKnown) {
		text += "\nimport \"google/protobuf/struct.proto\";\n"
	}
	s.text = []byte(text + "\nservice Samples {\n  rpc Call(Request) returns (Reply);\n}\n\n" + messages)
	return s, nil
}

// located is a value of a sample: nil, bool, string, json.Number, []any or object.
type located struct {
	value any
	from  string // the sample's name
}

// object has its keys in the order of the sample.
type object []member

type member struct {
	key   string
	value any
}

// inference has what is told.
type inference struct {
	arrays  []string // at the top
	rounded []string // numbers with more digits than a double has
	dynamic []string // what became Value, ListValue or Struct
}

// objects reads the samples of one side.
func (in *inference) objects(path string, given []sample) (kept []sample, objects []located, err error) {
	var array, other string // the first sample of each
	for _, s := range given {
		v, err := s.parsed(path)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", s.name, err)
		}
		switch v.(type) {
		case []any:
			array = cmp.Or(array, s.name)
			s.data = slices.Concat([]byte(`{"items":`), s.data, []byte("}"))
			v = object{{"items", v}}
		case object:
			other = cmp.Or(other, s.name)
		default:
			return nil, nil, fmt.Errorf("%s: %s at the top: a message is an object or an array", s.name,
				brief(json.RawMessage(s.data)))
		}
		kept, objects = append(kept, s), append(objects, located{v, s.name})
	}
	if array != "" && other != "" {
		return nil, nil, fmt.Errorf("%s: an object at the top, and an array in %s: make each %s one or the other",
			other, array, path)
	}
	if array != "" {
		in.arrays = append(in.arrays, path+": an array at the top became the key items, which JSON then has too")
	}
	keys, of, _ := byKey(objects)
	if i := slices.IndexFunc(keys, unnamable); i >= 0 {
		return nil, nil, fmt.Errorf("%s: %s: no field can have this key: rename it", of[keys[i]][0].from,
			below(path, keys[i]))
	}
	return kept, objects, nil
}

func (s sample) parsed(path string) (any, error) {
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(s.data, new(json.RawMessage)), &syntax) {
		return nil, fmt.Errorf("no JSON value, at byte %d: %w", syntax.Offset, syntax)
	}
	if !utf8.Valid(s.data) {
		return nil, errors.New("not UTF-8, which JSON has to be")
	}
	d := json.NewDecoder(bytes.NewReader(s.data))
	d.UseNumber()
	v, err := parsed(d, path)
	if err == nil && protojson.Unmarshal(s.data, new(structpb.Value)) != nil {
		err = errors.New("half of a surrogate pair in a string, which protobuf refuses")
	}
	return v, err
}

// parsed reads a value of valid JSON.
func parsed(d *json.Decoder, path string) (any, error) {
	token, err := d.Token()
	if n, ok := token.(json.Number); ok {
		if _, err := n.Float64(); err != nil {
			return nil, fmt.Errorf("%s: %s is beyond a double", path, brief(n))
		}
	}
	if _, ok := token.(json.Delim); !ok {
		return token, err
	}
	list, members, seen := []any{}, object{}, map[string]bool{}
	for d.More() {
		key, at := "", path+"[]"
		if token == json.Delim('{') {
			name, _ := d.Token()
			key, _ = name.(string)
			if at = below(path, key); seen[key] {
				return nil, fmt.Errorf("%s: this key is twice in one object", at)
			}
			seen[key] = true
		}
		v, err := parsed(d, at)
		if err != nil {
			return nil, err
		}
		list, members = append(list, v), append(members, member{key, v})
	}
	if _, err = d.Token(); token == json.Delim('{') {
		return members, err
	}
	return list, err
}

var plainKey = regexp.MustCompile(`^[\pL\pN_@$+:/-]+$`)

// below is the path of an object's value.
func below(path, key string) string {
	if !plainKey.MatchString(key) {
		key = brief(key)
	}
	return path + "." + key
}

// unnamable says whether no field can have a key: protobuf's JSON reads [key] as an extension, and encoding/json ignores
// the tag of a key with other characters than these.
func unnamable(key string) bool {
	return key == "" || key == "-" || key[0] == '[' && key[len(key)-1] == ']' ||
		strings.ContainsFunc(key, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r)
		})
}

// message returns the text of a message and of those within.
func (in *inference) message(name, path string, objects []located, depth int) string {
	indent := strings.Repeat("  ", depth)
	keys, of, _ := byKey(objects)
	if len(keys) == 0 {
		return indent + "message " + name + " {}\n"
	}
	text, within, names := indent+"message "+name+" {\n", "", fieldNames(keys)
	for i, key := range keys {
		camel := camelCase(names[key])
		typeName := strings.ToUpper(camel[:1]) + camel[1:]
		if strings.HasSuffix(typeName, "Entry") {
			typeName += "_" // protobuf makes such names of maps
		}
		typ, note, nested := in.typed(below(path, key), typeName, of[key], true, depth+1)
		var missing []string
		if absent := len(objects) - len(of[key]); absent > 0 {
			missing = append(missing, fmt.Sprintf("absent in %d of %d", absent, len(objects)))
		}
		if nulls := len(of[key]) - len(some(of[key])); nulls > 0 && typ != wellKnown+"Value" {
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
		text += comment(indent+"  // ", strings.Join(missing, ", ")) + comment(indent+"  // ", note) +
			fmt.Sprintf("%s  %s %s = %d%s;\n", indent, typ, names[key], number, option)
		if nested != "" {
			within += "\n" + nested
		}
	}
	return text + within + indent + "}\n"
}

// comment breaks a line at spaces.
func comment(before, line string) string {
	const columns = 100
	part := regexp.MustCompile(fmt.Sprintf(`(\S{%d,}|.{1,%[1]d})(?: |$)`, columns-len(before)))
	return part.ReplaceAllString(line, before+"$1\n")
}

// typed returns the type of a field. Values that are not alone are a list's elements or a map's values. name is for the
// message that they may need, whose text is nested.
func (in *inference) typed(path, name string, all []located, alone bool, depth int) (typ, note, nested string) {
	dynamic := func(typ, why, where string) (string, string, string) {
		in.dynamic = append(in.dynamic, path+": "+wellKnown+typ+": "+why+where)
		in.round(path, all)
		return wellKnown + typ, why, ""
	}
	values := some(all)
	kinds := tallied(values)
	if len(values) == 0 {
		return dynamic("Value", map[bool]string{true: "always empty", false: "always null"}[len(all) == 0], "")
	}
	if len(kinds) > 1 || len(values) < len(all) && !alone {
		var counts []string
		kinds = tallied(all)
		for _, k := range kinds {
			counts = append(counts, fmt.Sprintf("%s in %d", k.kind, k.n))
		}
		return dynamic("Value", strings.Join(counts, ", "), " ("+kinds[len(kinds)-1].from+")")
	}
	switch kinds[0].kind {
	case "number":
		return in.number(path, values), "", ""
	case "array":
		if !alone {
			of := map[bool]string{true: "map", false: "list"}[strings.HasSuffix(path, "{}")]
			return dynamic("ListValue", "a "+of+" of lists", "")
		}
		typ, note, nested = in.typed(path+"[]", name, elements(values), false, depth)
		return "repeated " + typ, note, nested
	case "object":
		keys, of, _ := byKey(values)
		why := mapped(values, alone)
		switch i := slices.IndexFunc(keys, unnamable); {
		case len(keys) == 0:
			return dynamic("Value", "always empty", "")
		case why != "" && !alone:
			return dynamic("Struct", why, "")
		case why != "":
			typ, note, nested = in.typed(path+"{}", name, flat(keys, of), false, depth)
			return "map<string, " + typ + ">", strings.TrimSuffix("a map: "+why+"; "+note, "; "), nested
		case i >= 0:
			return dynamic("Value", "no field can have the key "+brief(keys[i]), " ("+of[keys[i]][0].from+")")
		case depth > deepestMessage:
			return dynamic("Value", fmt.Sprintf("below %d messages", deepestMessage), "")
		}
		return name, "", in.message(name, path, values, depth)
	}
	return kinds[0].kind, "", ""
}

func (in *inference) number(path string, all []located) string {
	var fraction, negative, unsigned bool
	for _, l := range all {
		s := fmt.Sprint(l.value)
		_, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			_, err = strconv.ParseUint(s, 10, 64)
			unsigned = unsigned || err == nil
		}
		fraction = fraction || err != nil
		negative = negative || s[0] == '-'
	}
	switch {
	case fraction || negative && unsigned:
		in.round(path, all)
		return "double"
	case unsigned:
		return "uint64"
	}
	return "int64"
}

// round notes a number that a double rounds.
func (in *inference) round(path string, all []located) {
	for _, l := range all {
		if n := rounded(l.value); n != "" {
			in.rounded = append(in.rounded, fmt.Sprintf("%s: a double, and %s has more digits (%s)", path, n, l.from))
			return
		}
	}
}

// rounded finds a number whose digits are not those of a double.
func rounded(v any) (n string) {
	switch v := v.(type) {
	case json.Number:
		x, _ := v.Float64() // which was checked
		if significant(v.String()) != significant(strconv.FormatFloat(x, 'e', -1, 64)) {
			n = brief(v)
		}
	case []any:
		for _, element := range v {
			n = cmp.Or(n, rounded(element))
		}
	case object:
		for _, m := range v {
			n = cmp.Or(n, rounded(m.value))
		}
	}
	return n
}

func significant(number string) string {
	mantissa := number[:strings.IndexAny(number+"e", "eE")]
	return strings.Trim(strings.NewReplacer(".", "", "-", "").Replace(mantissa), "0")
}

var (
	// idKey matches numbers, dates, times, versions, addresses of e-mail, hex and UUIDs.
	idKey = regexp.MustCompile(`^(\d[\d.,:/TZ+-]*|v?\d+(\.\d+)+[-+.\w]*|[^@\s]+@[^@\s]+\.\w+|` +
		`[[:xdigit:]]{8,}(-[[:xdigit:]]+)*)$`)
	dataKey    = regexp.MustCompile(idKey.String() + `|.[./:].`) // paths and dotted names too
	identifier = regexp.MustCompile(`^[A-Za-z_]\w*$`)
)

// mapped says why objects are a map; "" if they are a message. That keys differ is a reason only if differ says so.
func mapped(objects []located, differ bool) string {
	keys, of, filled := byKey(objects)
	values := flat(keys, of)
	kinds := tallied(some(values))
	if len(keys) == 0 || len(kinds) > 1 {
		return ""
	}
	own := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return len(of[key]) == filled })
	common := len(keys) - len(own)
	if common == len(keys) {
		own, common = keys, 0
	}
	count := func(is func(key string) bool) (n int) {
		for _, key := range own {
			if is(key) {
				n++
			}
		}
		return n
	}
	many := manyScalars
	if len(kinds) > 0 && kinds[0].kind == "object" {
		many = manyObjects
	}
	switch {
	case common < len(own) && count(idKey.MatchString) == len(own):
		return "its keys are ids"
	case !differ || !alike(values):
		return ""
	case len(keys) >= many:
		return "its keys are many"
	case filled == 1 && 2*count(dataKey.MatchString) >= len(keys):
		return "its keys look like data"
	case filled > 1 && len(own) > 1 && common < len(own) && (common == 0 || count(identifier.MatchString) < len(own)) &&
		2*count(func(key string) bool { return len(of[key]) == 1 }) >= len(own):
		return "its keys differ between samples"
	}
	return ""
}

// alike says whether values have one shape: objects have half of their keys in common.
func alike(all []located) bool {
	kinds := tallied(some(all))
	if len(kinds) != 1 {
		return len(kinds) == 0
	}
	if kinds[0].kind == "array" {
		return alike(elements(all))
	}
	keys, of, filled := byKey(all) // none of scalars
	common := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return len(of[key]) < filled })
	return 2*len(common)*filled >= len(flat(keys, of))
}

// tally counts values of a kind.
type tally struct {
	kind string
	n    int
	from string // the first one's sample
}

// tallied counts values by kinds, the most frequent first.
func tallied(all []located) (kinds []tally) {
	for _, l := range all {
		kind := fmt.Sprintf("%T", l.value)
		switch l.value.(type) {
		case nil:
			kind = "null"
		case json.Number:
			kind = "number"
		case []any:
			kind = "array"
		case object:
			kind = "object"
		}
		i := slices.IndexFunc(kinds, func(k tally) bool { return k.kind == kind })
		if i < 0 {
			i, kinds = len(kinds), append(kinds, tally{kind, 0, l.from})
		}
		kinds[i].n++
	}
	slices.SortStableFunc(kinds, func(a, b tally) int { return b.n - a.n })
	return kinds
}

// some are the values but for nulls.
func some(all []located) []located {
	return slices.DeleteFunc(slices.Clone(all), func(l located) bool { return l.value == nil })
}

// byKey returns the values of objects, the keys in the order of their first appearance, and how many have a key.
func byKey(objects []located) (keys []string, of map[string][]located, filled int) {
	of = map[string][]located{}
	for _, l := range objects {
		o, _ := l.value.(object)
		for _, m := range o {
			if of[m.key] == nil {
				keys = append(keys, m.key)
			}
			of[m.key] = append(of[m.key], located{m.value, l.from})
		}
		filled += min(1, len(o))
	}
	return keys, of, filled
}

func flat(keys []string, of map[string][]located) (all []located) {
	for _, key := range keys {
		all = append(all, of[key]...)
	}
	return all
}

func elements(lists []located) (all []located) {
	for _, l := range lists {
		list, _ := l.value.([]any)
		for _, v := range list {
			all = append(all, located{v, l.from})
		}
	}
	return all
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

// fieldNames are the names of a message's fields by their keys. Without underscores no two are equal, so that they
// differ in JSON and in Go too. No name is the key of another field.
func fieldNames(keys []string) map[string]string {
	names, taken, tried, isKey := map[string]string{}, map[string]bool{}, map[string]int{}, map[string]bool{}
	for _, key := range keys {
		isKey[key] = true
	}
	for _, own := range []bool{true, false} { // first the keys that are names already
		for _, key := range keys {
			base := snakeCase(key)
			if own != (base == key) {
				continue
			}
			name := base
			for taken[strings.ReplaceAll(name, "_", "")] || name != key && isKey[name] {
				tried[base] = max(2, tried[base]+1)
				name = fmt.Sprint(base, "_", tried[base])
			}
			names[key], taken[strings.ReplaceAll(name, "_", "")] = name, true
		}
	}
	return names
}
