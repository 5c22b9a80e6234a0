package named_test

import (
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
