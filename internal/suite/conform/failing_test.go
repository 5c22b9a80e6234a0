package conform

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFailing: of a check's parts a failure counts more than a skip, wherever it is.
func TestFailing(t *testing.T) {
	fails, skips, passes := errors.New("fails"), Skip("skips"), error(nil)
	for reason, c := range map[string]struct{ first, second, want error }{
		"both pass":                    {passes, passes, nil},
		"the first fails":              {fails, passes, fails},
		"the second fails":             {passes, fails, fails},
		"the first is skipped":         {skips, passes, skips},
		"the second is skipped":        {passes, skips, nil},
		"a skip hides no failure":      {skips, fails, fails},
		"nor does a skip that follows": {fails, skips, fails},
	} {
		part := func(err error) func(Subject) {
			return func(Subject) { failIf(err != nil, "%w", err) }
		}
		err := ended(func() { failing(Subject{}, part(c.first), part(c.second)) })
		require.ErrorIs(t, err, c.want, reason)
		require.Equal(t, c.want == nil, err == nil, reason)
	}
}
