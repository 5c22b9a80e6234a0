package named_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rpcbench/rpcbench/internal/named"
)

func TestFind(t *testing.T) {
	all := []string{"ONE", "TWO", "THREE"}
	found, err := named.Find("number", all, strings.ToLower, "three", "one", "three")
	require.NoError(t, err)
	require.Equal(t, []string{"THREE", "ONE", "THREE"}, found)
	found, err = named.Find("number", all, strings.ToLower)
	require.NoError(t, err)
	require.Empty(t, found)
	_, err = named.Find("number", all, strings.ToLower, "one", "tow")
	require.EqualError(t, err, `rpcbench: unknown number "tow", did you mean "two"? The numbers are one, two, three`)
}

func TestFindSaysWhyABuildLacksV2(t *testing.T) {
	_, err := named.Find("codec", []string{"JSON"}, strings.ToLower, "json.v2")
	require.EqualError(t, err, "rpcbench: the codec json.v2 is not in this build: encoding/json/v2 needs Go 1.27 or later, without GOEXPERIMENT=nojsonv2; this is "+runtime.Version())
	found, err := named.Find("codec", []string{"json.V2"}, strings.ToLower, "json.v2")
	require.NoError(t, err)
	require.Len(t, found, 1)
}
