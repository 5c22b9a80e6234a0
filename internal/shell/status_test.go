package shell

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOneLine(t *testing.T) {
	require.Equal(t, "write /dev/stdout: no space", OneLine(errors.New("write /dev/stdout: no space")))
	several := errors.Join(errors.New("run: a\n\tb\n"), errors.New("c"))
	require.Equal(t, "run: a; b; c", OneLine(several))
	require.Equal(t, "full; b", OneLine(errors.Join(errors.New("full"), errors.New("b"), errors.New("full"))))
}
