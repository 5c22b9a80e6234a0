package environ

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommit(t *testing.T) {
	const revision = "0123456789abcdef0123456789abcdef01234567"
	for why, test := range map[string]struct {
		settings []debug.BuildSetting
		want     string
	}{
		"a clean tree":           {[]debug.BuildSetting{{Key: "vcs.modified", Value: "false"}, {Key: "vcs.revision", Value: revision}}, "0123456789ab"},
		"changes, listed first":  {[]debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, {Key: "vcs.revision", Value: revision}}, "0123456789ab+changes"},
		"changes, listed second": {[]debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: "true"}}, "0123456789ab+changes"},
	} {
		require.Equal(t, test.want, commit(&debug.BuildInfo{Settings: test.settings}), why)
	}
}

func TestFlags(t *testing.T) {
	for why, test := range map[string]struct {
		settings []debug.BuildSetting
		want     string
	}{
		"a plain build":        {[]debug.BuildSetting{{Key: "-compiler", Value: "gc"}, {Key: "GOAMD64", Value: "v1"}, {Key: "-ldflags", Value: "-s"}}, ""},
		"the race detector":    {[]debug.BuildSetting{{Key: "-race", Value: "true"}}, "-race"},
		"coverage":             {[]debug.BuildSetting{{Key: "-cover", Value: "true"}}, "-cover"},
		"no optimization":      {[]debug.BuildSetting{{Key: "-gcflags", Value: "-N -l"}}, "-gcflags=-N -l"},
		"guided by a profile":  {[]debug.BuildSetting{{Key: "-pgo", Value: "/tmp/default.pgo"}}, "-pgo=/tmp/default.pgo"},
		"several, in order":    {[]debug.BuildSetting{{Key: "-gcflags", Value: "-N"}, {Key: "-race", Value: "true"}}, "-gcflags=-N -race"},
		"what is switched off": {[]debug.BuildSetting{{Key: "-race", Value: "false"}, {Key: "-gcflags"}}, ""},
	} {
		require.Equal(t, test.want, flags(test.settings), why)
	}
}

// TestVersionOfAReplacement: an outsider's header names the rpcbench that measured, also when a replace directive put it there.
func TestVersionOfAReplacement(t *testing.T) {
	here, err := os.Getwd()
	require.NoError(t, err)
	for why, test := range map[string]struct {
		replace *debug.Module
		want    string
	}{
		"by nothing":        {nil, "v1.2.3"},
		"by another module": {&debug.Module{Path: "example.com/fork", Version: "v1.2.4"}, "example.com/fork@v1.2.4"},
		"by a work tree":    {&debug.Module{Path: here, Version: "(devel)"}, head(".")},
		"by a bare folder":  {&debug.Module{Path: t.TempDir()}, "replaced"},
	} {
		require.Equal(t, test.want, version(&debug.Module{Path: "example.com/m", Version: "v1.2.3", Replace: test.replace}), why)
	}
	require.Regexp(t, `^[0-9a-f]{12}(\+changes)?$`, head("."))
}
