package shell

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDidYouMean(t *testing.T) {
	names := []string{"grpcprotobuf", "httpjson", "httpjson.gzip", "httpjsoniter", "rawtcp", "gomaxprocs"}
	for reason, c := range map[string]struct{ typed, want string }{
		"two letters swapped":       {"httpjsno", "did you mean httpjson? "},
		"a letter too many":         {"rawtccp", "did you mean rawtcp? "},
		"a letter is missing":       {"gomaxproc", "did you mean gomaxprocs? "},
		"another letter":            {"rawtcq", "did you mean rawtcp? "},
		"what newcomers say":        {"grpc", "did you mean grpcprotobuf? "},
		"what they say of JSON":     {"rest", "did you mean httpjson? "},
		"a word for what isn't one": {"connect", ""},
		"nothing is near":           {"tiny", ""},
		"nothing":                   {"", ""},
	} {
		require.Equal(t, c.want, didYouMean(c.typed, names), reason)
	}
}

func TestDistance(t *testing.T) {
	for pair, want := range map[[2]string]int{{"", ""}: 0, {"", "abc"}: 3, {"abc", ""}: 3, {"abc", "abc"}: 0,
		{"abc", "acb"}: 1, {"abc", "abd"}: 1, {"abc", "bc"}: 1, {"abc", "xabc"}: 1, {"kitten", "sitting"}: 3} {
		require.Equal(t, want, distance(pair[0], pair[1]), "%v", pair)
	}
}
